"""`ekorn run`: runs a program as Python does, with settings that its environments start from."""

from __future__ import annotations

import builtins
import io
import os
import sys
import traceback
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader
from types import ModuleType, TracebackType

from ekorn.config.configuration import Configuration
from ekorn.config.starting_configuration import set_command_line
from ekorn.errors import ConfigurationError, EkornError
from ekorn.program.running.shown_errors import shown_frames

__all__ = ["from_script_on", "run_as_main", "run_program"]

_CLI = os.path.dirname(__file__) + os.sep


def run_program(script: str, arguments: Sequence[str], configuration: Configuration) -> int:
    """Run a script as `python script.py arguments` would; its environments start from the configuration.

    Returns:
        The exit code: the one that the script exits with, or 1 if it raises.

    Raises:
        ConfigurationError: There is no such script.
    """
    if not os.path.isfile(script):
        raise ConfigurationError(f"there is no program {script!r}")
    set_command_line(configuration)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # a file or a pipe gets the lines of the program when they happen
    try:
        run_as_main(script, arguments, replace_first_path=False)
    except EkornError:
        raise  # the message is written for users, so the caller prints it without a traceback
    except SystemExit as end:
        return _exit_code(end)
    except Exception as error:
        traceback.print_exception(type(error), error, shown_frames(error, from_script_on(error.__traceback__)))
        return 1
    finally:
        set_command_line(None)
    return 0


def _exit_code(end: SystemExit) -> int:
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code
    print(end.code, file=sys.stderr)  # as Python does with exit("some text")
    return 1


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
