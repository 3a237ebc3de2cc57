"""`TableStream`: columns of which every subtask keeps the latest rows as a table; and the stream that reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ekorn.errors import InvalidProgramError
from ekorn.functions.batch_function import TableBatchFunction
from ekorn.graph.column_specs import BatchLibrary, MapBatchesWithTableSpec
from ekorn.graph.specs import Broadcast
from ekorn.graph.stream_graph import Node
from ekorn.program.checks.argument_checks import check_function
from ekorn.program.checks.attribute_suggestions import SuggestsMethods
from ekorn.program.streams.column_types import checked_library, column_names, row_type_from
from ekorn.program.streams.stream_display import DrawnInNotebooks

if TYPE_CHECKING:
    from ekorn.program.streams.column_stream import ColumnStream

__all__ = ["TableConnectedStream", "TableStream"]


class TableStream(DrawnInNotebooks, SuggestsMethods):
    """The result of `broadcast_table(...)`. Connect a stream of columns with it, whose function sees the table.

    Example:
        >>> from ekorn.common import Types
        >>> from ekorn.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> rate = Types.ROW_NAMED(["currency", "rate"], [Types.STRING(), Types.DOUBLE()])
        >>> env.from_collection([("USD", 0.9)], rate).to_columns().broadcast_table("currency")
        TableStream(['currency', 'rate'] by ('currency',))
    """

    def __init__(self, stream: ColumnStream, keys: tuple[str, ...]) -> None:
        if not keys:
            raise InvalidProgramError("broadcast_table() needs the columns that identify a row of the table")
        column_names(stream.row_type, keys, "broadcast_table")
        self.stream = stream
        self.keys = keys

    def _drawn_nodes(self) -> tuple[Node, ...]:
        return self.stream._drawn_nodes()

    def __repr__(self) -> str:
        return f"TableStream({self.stream.row_type.field_names()} by {self.keys})"


class TableConnectedStream(DrawnInNotebooks, SuggestsMethods):
    """A stream of columns that is connected with a table."""

    def __init__(self, stream: ColumnStream, table: TableStream) -> None:
        if table.stream.get_execution_environment() is not stream.get_execution_environment():
            raise InvalidProgramError("connect() needs streams of the same environment")
        self._stream = stream
        self._table = table

    def map_batches(
        self, func: Callable[[Any, Any], Any] | TableBatchFunction, output_type: Any, library: BatchLibrary = "arrow"
    ) -> ColumnStream:
        """Turn each batch of columns, with the rows of the table, into batches of columns.

        Args:
            func: A `TableBatchFunction` or a callable of two arguments: the batch and the table.
            output_type: The columns of the results, as `ColumnStream.map_batches` takes them.
            library: What the function takes and returns.
        """
        check_function("map_batches", func, TableBatchFunction, 2)
        checked_library(library)
        row_type = row_type_from(output_type, "map_batches")
        table = self._table
        spec = MapBatchesWithTableSpec(func, library, row_type, table.keys, table.stream.row_type)
        edges = tuple(edge.partitioned(Broadcast()) for edge in table.stream._column_edges)
        return self._stream._columns_with("Map Batches with Table", spec, row_type, edges)

    def _drawn_nodes(self) -> tuple[Node, ...]:
        return (*self._stream._drawn_nodes(), *self._table._drawn_nodes())

    def __repr__(self) -> str:
        return f"TableConnectedStream({self._stream!r}, {self._table!r})"
