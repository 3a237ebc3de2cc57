"""`WindowedColumnStream`: the windows of columns with keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ekorn.errors import InvalidProgramError
from ekorn.functions.windows.assigner_contract import WindowAssigner
from ekorn.functions.windows.named_aggregates import WindowRows
from ekorn.functions.windows.window_arithmetic import WindowGrid
from ekorn.graph.column_specs import WindowAggregateSpec
from ekorn.program.streams.column_types import AnyAggregate, adapted, row_type_from, window_fields
from ekorn.program.streams.data_stream import DataStream
from ekorn.program.streams.windowed_stream import WindowedStream
from ekorn.types.composite_types import RowTypeInfo
from ekorn.types.data_types import RowType

if TYPE_CHECKING:
    from ekorn.program.streams.keyed_column_stream import KeyedColumnStream

__all__ = ["WindowedColumnStream"]


class WindowedColumnStream(WindowedStream):
    """The windows of a stream of columns with keys.

    `aggregate` with aggregates by name is computed on columns, in tumbling and sliding windows with their default
    trigger and no evictor. All else takes rows.
    """

    def __init__(self, keyed_stream: KeyedColumnStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        super().__init__(keyed_stream, window_assigner)
        self._keyed_columns = keyed_stream

    def _aggregates_by_name(self, aggregates: Mapping[str, AnyAggregate]) -> DataStream:
        grid = self._grid()
        if grid is None:
            return super()._aggregates_by_name(aggregates)
        names, row_type = self._keyed_columns._keys_by_name("aggregate")
        self._check_late_tag(row_type)
        named = adapted(row_type, aggregates)
        rows = window_fields(row_type, names, named, bounds=True)
        windows = self._named_spec(named, WindowRows(rows.field_names(), bounds=True))
        spec = WindowAggregateSpec(windows, grid, tuple(named.items()), names, row_type, rows)
        return self._keyed_columns._columns_per_key(self._name(windows.function), spec, rows)

    def _grid(self) -> WindowGrid | None:
        """Return where windows start and end, if they fire at their end and have no other rule."""
        at_end = self._trigger.fires_only_at_window_end(event_time=self._assigner.is_event_time())
        arithmetic = self._assigner.arithmetic()
        return arithmetic if at_end and self._evictor is None and isinstance(arithmetic, WindowGrid) else None

    def _check_late_tag(self, row_type: RowType) -> None:
        """Refuse a side output of records that are not rows of the input."""
        declared = None if self._late_tag is None else self._late_tag.type_info
        if declared is None:
            return
        if not isinstance(declared, RowTypeInfo) or row_type_from(declared, "side_output_late_data") != row_type:
            raise InvalidProgramError(
                f"side_output_late_data(): late rows have the columns {row_type.field_names()} of the input, and "
                f"{self._late_tag!r} declares another type; leave the type out, or declare that of the input"
            )
