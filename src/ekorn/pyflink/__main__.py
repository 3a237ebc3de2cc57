"""The command `python -m ekorn.pyflink script.py [args]`."""

import sys

from ekorn.cli.pyflink_script import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
