"""The types of `pyflink.table`, which file formats take; there is no Table API."""

from tamias.types.data_types import DataTypes
from tamias.types.row import Row, RowKind

__all__ = ["DataTypes", "Row", "RowKind"]
