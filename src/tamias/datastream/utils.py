"""`ResultTypeQueryable`, at its path in PyFlink."""

from tamias.program.result_type import ResultTypeQueryable

__all__ = ["ResultTypeQueryable"]
