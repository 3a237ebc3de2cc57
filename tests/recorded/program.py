"""The recorded programs: loads a program for a package, and identifies the text that was recorded.

A program is an ordinary PyFlink module; `family` keeps many of them in one file. Loading a program for another package
replaces `pyflink` in the import lines and changes nothing else, as a user does who moves a program. The module defines

    PARALLELISM  the default parallelism of the environment
    MODE         "STREAMING" or "BATCH"
    ORDERED      True: the sequence of the results is compared; False: only the multiset
    RESULT       what is recorded (default "values"):
                   values  build(env) returns a stream: the collected records
                   stdout  build(env) adds sinks: the lines that the job wrote to standard output
                   files   build(env, directory) adds sinks: the lines of the finished files below the directory
                   plan    build(env) draws a job: the JSON of get_execution_plan()
                   facts   build(env) returns a list of values: those values; nothing is run
    QUIRK        a sentence, if PyFlink's behaviour is an accident that nothing should rely on (default "")
    build        the function that draws the job
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.recorded.family import names, standalone

__all__ = ["OUTPUTS", "Program", "load", "names", "sha256", "standalone"]

OUTPUTS = Path(__file__).parent / "outputs"

_IMPORT_LINE = re.compile(r"^(\s*(?:from|import)\s+)pyflink\b", re.MULTILINE)


@dataclass(frozen=True)
class Program:
    name: str
    parallelism: int
    mode: str
    ordered: bool
    result: str
    quirk: str
    build: Callable[..., Any]


def load(name: str, package: str = "pyflink") -> Program:
    """Return the program with its imports taken from `package`."""
    source = _IMPORT_LINE.sub(rf"\g<1>{package}", standalone(name))
    # The module is not entered into sys.modules: cloudpickle then sends its functions by value, and the processes
    # that run the functions need not find this folder.
    module = ModuleType(f"recorded_{name}")
    exec(compile(source, f"<recorded program {name}>", "exec"), module.__dict__)
    return Program(
        name,
        module.PARALLELISM,
        module.MODE,
        module.ORDERED,
        getattr(module, "RESULT", "values"),
        getattr(module, "QUIRK", ""),
        module.build,
    )


def sha256(name: str) -> str:
    """Return the checksum of a program's text; a recording of another text has another one."""
    return hashlib.sha256(standalone(name).encode()).hexdigest()
