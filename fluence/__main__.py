"""`python -m fluence`."""

from fluence.commands import main

if __name__ == "__main__":
    main()
