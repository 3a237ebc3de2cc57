"""`python -m ekorn`."""

import sys

from ekorn.cli.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
