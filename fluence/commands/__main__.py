"""`python -m fluence.commands`, for where the entry point is not installed."""

from fluence.commands import main

if __name__ == "__main__":
    main()
