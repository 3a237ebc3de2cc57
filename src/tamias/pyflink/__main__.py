"""The command `python -m tamias.pyflink script.py [args]`."""

import sys

from tamias.cli.pyflink_script import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
