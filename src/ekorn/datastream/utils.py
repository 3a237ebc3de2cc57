"""`ResultTypeQueryable`, at its path in PyFlink."""

from ekorn.types.type_information import ResultTypeQueryable

__all__ = ["ResultTypeQueryable"]
