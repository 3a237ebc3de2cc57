"""Runs a PyFlink script as Python would, with `pyflink` being Tamias."""

from __future__ import annotations

import builtins
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader
from types import ModuleType, TracebackType

from tamias.program.pyflink_alias import install

USAGE = "usage: python -m tamias.pyflink script.py [argument ...]"


def main(arguments: Sequence[str]) -> int:
    """The command line; the exit status.

    An exception of the script is shown with the script's own lines, without those of this package that called it.
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
        traceback.print_exception(type(error), error, _from_script_on(error.__traceback__))
        return 1
    return 0


def run_script(script: str, arguments: Sequence[str] = ()) -> ModuleType:
    """Run a script as `python script.py arguments` would: it is `__main__`, and finds the modules beside it.

    The script stays `__main__` afterwards, for jobs that it left running.

    Returns:
        The script's module.
    """
    install()
    # Scripts often log to standard output from INFO on: PySpark's bridge would tell of its connections there.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    path = os.path.abspath(script)
    loader = SourceFileLoader("__main__", path)
    module = ModuleType("__main__")
    module.__dict__.update(__file__=path, __loader__=loader, __builtins__=builtins, __cached__=None)
    sys.modules["__main__"] = module
    sys.argv[:] = [script, *arguments]
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(path)  # in place of the folder in which `python -m` was started
    code = compile(loader.get_data(path), path, "exec", dont_inherit=True)
    exec(code, module.__dict__)
    return module


def _from_script_on(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of this file that it starts with."""
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return trace
