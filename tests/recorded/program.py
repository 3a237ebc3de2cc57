"""The recorded programs: how one is found, loaded for a package, and recognised as changed.

A program is an ordinary PyFlink module in `programs/`. Loading it for another package replaces `pyflink` in its
import lines and nothing else: what a user does who moves a program.

    PARALLELISM  default parallelism of the environment
    MODE         "STREAMING" or "BATCH"
    ORDERED      True: the sequence of results counts; False: only the multiset
    RESULT       what is recorded (default "values"):
                   values  build(env) returns a stream, its collected records
                   stdout  build(env) adds sinks, the job's lines on standard output
                   files   build(env, directory) adds sinks, the lines of the finished files below the directory
                   plan    build(env) draws a job, the JSON of get_execution_plan()
                   facts   build(env) returns a list of values, nothing is run
    QUIRK        a sentence, where what PyFlink does is an accident that nothing should rely on (default "")
    build        the function
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
OUTPUTS = HERE / "outputs"

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


def names() -> list[str]:
    return sorted(path.stem for path in PROGRAMS.glob("*.py"))


def load(name: str, package: str = "pyflink") -> Program:
    """The program with its imports taken from `package`."""
    path = PROGRAMS / f"{name}.py"
    source = _IMPORT_LINE.sub(rf"\g<1>{package}", path.read_text(encoding="utf-8"))
    # The module is not entered into sys.modules: cloudpickle then sends its functions by value, and the
    # processes that run them need not find this folder.
    module = ModuleType(f"recorded_{name}")
    exec(compile(source, str(path), "exec"), module.__dict__)
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
    """Identifies the text of a program, so that a recording of an older text is noticed."""
    return hashlib.sha256((PROGRAMS / f"{name}.py").read_bytes()).hexdigest()
