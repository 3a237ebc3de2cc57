"""Runs programs with a mistake in them and returns the whole of what is said about it.

A file in `golden_messages/` holds a program, a ruler, and what a person sees who runs it: warnings, lines of the log
and the error that ends the program. `python -m tests.program.mistakes` writes what is said now into every file; read
the difference before you commit it.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import runpy
import subprocess
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from typing import NamedTuple, TextIO

from ekorn.testing import on_local_engine

FOLDER = Path(__file__).parent / "golden_messages"
SOURCE = Path(__file__).parents[2] / "src"
RULER = "# ------------------------------------------------------------------ says\n"
IN_PROCESS = ("no-execute", "dataset-no-execute", "ends-over-a-running-job")  # what is said when the interpreter ends


class Mistake(NamedTuple):
    """A program, and what is said about it."""

    program: str
    said: str


def read(name: str) -> Mistake:
    """Return the mistake of that name as it is recorded."""
    program, _, said = (FOLDER / f"{name}.txt").read_text(encoding="utf-8").partition(RULER)
    return Mistake(program, said)


def names() -> list[str]:
    """Return the names of all recorded mistakes."""
    return sorted(path.stem for path in FOLDER.glob("*.txt"))


def said_by(name: str, folder: Path) -> str:
    """Run a program without Spark, and return what is said about it, without what differs between two runs.

    Args:
        name: The mistake.
        folder: Where the program is written to.
    """
    script = folder / "program.py"
    script.write_text(read(name).program, encoding="utf-8")
    said = _by_a_process(script) if name in IN_PROCESS else _in_this_process(script)
    return _normalised(said, folder)


def _in_this_process(script: Path) -> str:
    said = io.StringIO()
    log = logging.StreamHandler(said)
    log.setLevel(logging.WARNING)
    log.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logging.getLogger("ekorn").addHandler(log)
    try:
        with contextlib.redirect_stderr(said), warnings.catch_warnings(), on_local_engine():
            warnings.simplefilter("default")
            warnings.showwarning = _show_warning  # pytest has put its own in place
            runpy.run_path(str(script), run_name="__main__")
    except Exception as error:  # whatever a person would see as the end of a traceback
        said.write("".join(traceback.format_exception_only(error)))
    finally:
        logging.getLogger("ekorn").removeHandler(log)
    return said.getvalue()


def _show_warning(  # noqa: PLR0917 - the signature of warnings.showwarning
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    sys.stderr.write(warnings.formatwarning(message, category, filename, lineno, line))


ON_LOCAL_ENGINE = "import runpy, sys\nfrom ekorn.testing import on_local_engine\nwith on_local_engine():\n    "


def _by_a_process(script: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", f"{ON_LOCAL_ENGINE}runpy.run_path(sys.argv[1], run_name='__main__')", str(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
    )
    return done.stderr


def _normalised(said: str, folder: Path) -> str:
    said = said.replace(f"{folder}{os.sep}", "").replace(f"{SOURCE}{os.sep}", "")
    said = re.sub(r"\b0x[0-9a-f]{6,}", "0x...", said)
    lines = [line for line in said.splitlines() if not re.fullmatch(r"\s*[~^][~^ ]*", line)]  # differ between Pythons
    return "".join(f"{line}\n" for line in lines)


def main() -> None:
    """Write what is said now into every file."""
    for name in names():
        with tempfile.TemporaryDirectory() as folder:
            text = read(name).program + RULER + said_by(name, Path(folder))
        (FOLDER / f"{name}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
