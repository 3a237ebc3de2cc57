"""`python -m tamias`."""

import sys

from tamias.cli.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
