"""Benchmarks: how fast, side by side with a peer or a ceiling in one run, as ratios (docs/performance.md)."""
