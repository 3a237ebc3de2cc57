"""PyFlink's names for Tamias: unmodified PyFlink programs run with `python -m tamias.pyflink script.py [args]`."""

from tamias.cli.pyflink_script import run_script
from tamias.program.pyflink_alias import install

__all__ = ["install", "run_script"]
