"""`python -m tamias.pyflink script.py [args]`."""

import sys

from tamias.pyflink.script import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
