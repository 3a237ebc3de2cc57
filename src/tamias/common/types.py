"""`Row`: a record whose fields may have names, with a mark saying what it does to a changelog."""

from tamias.types.row import Row, RowKind, _row_of_kind, make_row  # noqa: F401 - pickled rows name the functions

__all__ = ["Row", "RowKind"]
