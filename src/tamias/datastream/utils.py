"""What PyFlink keeps under this name and programs use."""

from tamias.program.result_type import ResultTypeQueryable

__all__ = ["ResultTypeQueryable"]
