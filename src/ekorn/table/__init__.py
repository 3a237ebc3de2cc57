"""The types of `pyflink.table`, which file formats take; there is no Table API."""

from ekorn.types.data_types import DataTypes
from ekorn.types.row import Row, RowKind

__all__ = ["DataTypes", "Row", "RowKind"]
