"""PyFlink's names for Tamias: unmodified PyFlink programs run with `python -m tamias.pyflink script.py [args]`."""

from tamias.pyflink.alias import install
from tamias.pyflink.script import run_script

__all__ = ["install", "run_script"]
