"""`ResultTypeQueryable`, at its path in PyFlink."""

from ekorn.program.result_type import ResultTypeQueryable

__all__ = ["ResultTypeQueryable"]
