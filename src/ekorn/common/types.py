"""`Row`: a record with optional field names and a row kind."""

from ekorn.types.row import Row, RowKind, _row_of_kind, make_row  # noqa: F401 - pickled rows name the functions

__all__ = ["Row", "RowKind"]
