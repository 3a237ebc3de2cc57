"""Runs unmodified PyFlink programs: `python -m ekorn.pyflink script.py [args]`, or `install()` before the imports."""

from ekorn.cli.pyflink_script import run_script
from ekorn.program.pyflink_alias import install

__all__ = ["install", "run_script"]
