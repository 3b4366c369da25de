"""`python -m bench`: the whole benchmark; a table for people, build/bench.json for programs."""

from __future__ import annotations

from bench.run import main

if __name__ == "__main__":
    main()
