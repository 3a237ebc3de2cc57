"""`python -m ekorn.pyflink`: runs a PyFlink script with `pyflink` being ekorn."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Sequence
from types import ModuleType

from ekorn.cli.run_command import from_script_on, run_as_main
from ekorn.program.pyflink_alias import install
from ekorn.program.running.shown_errors import shown_frames

USAGE = "usage: python -m ekorn.pyflink script.py [argument ...]"


def main(arguments: Sequence[str]) -> int:
    """Run the command line and return the exit code.

    The traceback of an exception begins with the script's own lines.
    """
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    script = arguments[0]
    if not os.path.isfile(script):
        print(f"there is no script {script!r}\n{USAGE}", file=sys.stderr)
        return 2
    try:
        run_script(script, arguments[1:])
    except Exception as error:
        traceback.print_exception(type(error), error, shown_frames(error, from_script_on(error.__traceback__)))
        return 1
    return 0


def run_script(script: str, arguments: Sequence[str] = ()) -> ModuleType:
    """Run a PyFlink script as `python script.py arguments` would.

    Returns:
        The module of the script, which stays `__main__` for jobs that it left running.
    """
    install()
    # Scripts often log to standard output at INFO, where PySpark's bridge would report its connections.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    return run_as_main(script, arguments, replace_first_path=True)
