"""Benchmarks: compare Fluence with a peer or with the best possible in one run (docs/performance.md)."""
