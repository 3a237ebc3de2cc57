"""Runs unmodified PyFlink programs: `python -m tamias.pyflink script.py [args]`, or `install()` before the imports."""

from tamias.cli.pyflink_script import run_script
from tamias.program.pyflink_alias import install

__all__ = ["install", "run_script"]
