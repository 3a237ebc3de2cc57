"""`ekorn run`: runs a program as Python does, with settings that its environments start from."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

from ekorn.cli.main_script import from_script_on, run_as_main
from ekorn.config.configuration import Configuration
from ekorn.config.starting_configuration import set_command_line
from ekorn.errors import ConfigurationError, EkornError

__all__ = ["run_program"]


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
    try:
        run_as_main(script, arguments, replace_first_path=False)
    except EkornError:
        raise  # its message is written for users, so the caller prints it without a traceback
    except SystemExit as end:
        return _exit_code(end)
    except Exception as error:
        traceback.print_exception(type(error), error, from_script_on(error.__traceback__))
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
