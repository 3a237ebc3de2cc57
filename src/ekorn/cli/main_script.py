"""Runs a Python script as the main program of this process, as `python script.py arguments` does."""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader
from types import ModuleType, TracebackType

_CLI = os.path.dirname(__file__) + os.sep


def run_as_main(script: str, arguments: Sequence[str], *, replace_first_path: bool) -> ModuleType:
    """Run a script as `__main__`; its functions and classes must be there to travel to slots.

    The script finds the modules beside it. It stays `__main__` afterwards, for jobs that it left running.

    Args:
        script: The path of the script.
        arguments: The arguments of the script, without its own name.
        replace_first_path: Put the script's folder in place of the first entry of `sys.path`, which is the current
            folder under `python -m`; otherwise put it before the first entry.

    Returns:
        The module of the script.
    """
    path = os.path.abspath(script)
    loader = SourceFileLoader("__main__", path)
    module = ModuleType("__main__")
    module.__dict__.update(__file__=path, __loader__=loader, __builtins__=builtins, __cached__=None)
    sys.modules["__main__"] = module
    sys.argv[:] = [script, *arguments]
    if not sys.flags.safe_path:
        sys.path[: 1 if replace_first_path else 0] = [os.path.dirname(path)]
    exec(compile(loader.get_data(path), path, "exec", dont_inherit=True), module.__dict__)
    return module


def from_script_on(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback without its first frames, which are those of the command line."""
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_CLI):
        trace = trace.tb_next
    return trace
