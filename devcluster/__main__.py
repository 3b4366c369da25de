"""`python -m devcluster`."""

from devcluster.commands import main

if __name__ == "__main__":
    main()
