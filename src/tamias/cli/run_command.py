"""`tamias run`: a program as Python runs it, with settings that its environments start from."""

from __future__ import annotations

import builtins
import os
import sys
import traceback
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader
from types import ModuleType, TracebackType

from tamias.config.configuration import Configuration
from tamias.config.starting_configuration import set_command_line
from tamias.errors import ConfigurationError, TamiasError

__all__ = ["run_program"]


def run_program(script: str, arguments: Sequence[str], configuration: Configuration) -> int:
    """Run a script as `python script.py arguments` would, its environments starting from a configuration.

    Returns:
        The exit code: what the script exits with, 1 when it raises.

    Raises:
        ConfigurationError: There is no such script.
    """
    if not os.path.isfile(script):
        raise ConfigurationError(f"there is no program {script!r}")
    set_command_line(configuration)
    try:
        _execute(script, arguments)
    except TamiasError:
        raise  # its words are meant for people: the caller shows them
    except SystemExit as end:
        return _exit_code(end)
    except Exception as error:
        traceback.print_exception(type(error), error, _from_script_on(error.__traceback__))
        return 1
    finally:
        set_command_line(None)
    return 0


def _execute(script: str, arguments: Sequence[str]) -> None:
    """The script is `__main__`, as functions and classes in it must be to travel, and finds the modules beside it."""
    path = os.path.abspath(script)
    loader = SourceFileLoader("__main__", path)
    module = ModuleType("__main__")
    module.__dict__.update(__file__=path, __loader__=loader, __builtins__=builtins, __cached__=None)
    sys.modules["__main__"] = module
    sys.argv[:] = [script, *arguments]
    if not sys.flags.safe_path:
        sys.path.insert(0, os.path.dirname(path))
    exec(compile(loader.get_data(path), path, "exec", dont_inherit=True), module.__dict__)


def _exit_code(end: SystemExit) -> int:
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code
    print(end.code, file=sys.stderr)  # as Python does with exit("some words")
    return 1


def _from_script_on(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of this file that it starts with."""
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return trace
