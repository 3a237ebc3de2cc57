"""`HybridSource`: reads sources one after the other, such as files first and then Kafka.

All sources are listed when the job starts, and the splits of all of them are in every checkpoint, so nothing is left
out or read twice when the job fails around a switch. The runtime reads the splits of a source when no subtask has
splits of an earlier source left (`Source.stage_of`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ekorn.columns.columns_type import has_columns
from ekorn.errors import ConfigurationError
from ekorn.functions.source_contract import (
    Batch,
    Boundedness,
    Source,
    SourceConnection,
    Split,
    SplitReader,
)
from ekorn.types.type_information import TypeInformation

__all__ = ["HybridSource", "HybridSourceBuilder"]


class HybridSource(Source):
    """Reads a list of sources, each to its end before the next; only the last one may be unbounded.

    HybridSource.builder(files).add_source(kafka).build()

    A source that starts at "latest" starts there when the job starts, not when the switch happens: no record that
    arrives in between is left out.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        """Create the source from the sources of a builder."""
        self._sources = list(sources)

    @staticmethod
    def builder(first_source: Source) -> HybridSourceBuilder:
        """Begin with the source that is read first."""
        return HybridSourceBuilder(first_source)

    @property
    def boundedness(self) -> Boundedness:
        """Return the boundedness of the last source."""
        return self._sources[-1].boundedness

    @property
    def ends(self) -> bool:
        """Return whether the last source ends."""
        return self._sources[-1].ends

    @property
    def discovery_interval_ms(self) -> int | None:
        """Return the interval of the last source; the others are listed once."""
        return self._sources[-1].discovery_interval_ms

    @property
    def forgets_vanished_splits(self) -> bool:
        """Return what the last source does. Splits of the others are never discovered again."""
        return self._sources[-1].forgets_vanished_splits

    @property
    def stage_count(self) -> int:
        """Return the number of sources."""
        return len(self._sources)

    def stage_of(self, split_id: str) -> int:
        """Return the number of the source that a split belongs to."""
        return int(split_id.partition("/")[0])

    def owner(self, split_id: str, parallelism: int) -> int | None:
        """Return the subtask that the split's source chooses."""
        stage, _, inner_id = split_id.partition("/")
        return self._sources[int(stage)].owner(inner_id, parallelism)

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type that all sources declare, or None.

        Raises:
            ConfigurationError: Some sources give columns, and others give rows or other columns.
        """
        types = [getattr(source, "get_produced_type", lambda: None)() for source in self._sources]
        if all(each == types[0] for each in types):
            return types[0]
        if any(map(has_columns, types)):
            told = "; ".join(f"{s!r} gives {t or 'records'}" for s, t in zip(self._sources, types, strict=True))
            raise ConfigurationError(
                f"the sources of a HybridSource must give columns of one type, or all of them records: {told}"
            )
        return None

    def discover_splits(self, parallelism: int) -> Sequence[Split]:
        """Return the splits of all sources."""
        return self.connect(0).discover_splits(parallelism, first=True)

    def create_reader(self, split: Split, position: Any | None) -> SplitReader:
        """Open a split of one of the sources."""
        return self.connect(0).create_reader(split, position)

    def connect(self, subtask_index: int) -> SourceConnection:
        """Open the connections of one subtask."""
        return _HybridConnection(self._sources, subtask_index)

    def __repr__(self) -> str:
        return f"HybridSource({', '.join(map(repr, self._sources))})"


class HybridSourceBuilder:
    """Builds a `HybridSource`."""

    def __init__(self, first_source: Source) -> None:
        """Begin with the source that is read first."""
        self._sources = [_checked("builder", first_source)]

    def add_source(self, source: Source) -> HybridSourceBuilder:
        """Add the source that is read after those added so far."""
        if not self._sources[-1].ends:
            raise ValueError(
                f"add_source(): {self._sources[-1]!r} is unbounded, so no source can follow it; "
                "only the last source of a HybridSource may be unbounded"
            )
        self._sources.append(_checked("add_source", source))
        return self

    def build(self) -> HybridSource:
        """Return the source."""
        return HybridSource(self._sources)


class _HybridConnection(SourceConnection):
    def __init__(self, sources: Sequence[Source], subtask_index: int) -> None:
        self._sources = sources
        self._subtask_index = subtask_index
        self._connections: dict[int, SourceConnection] = {}

    def discover_splits(self, parallelism: int, *, first: bool) -> Sequence[Split]:
        last = len(self._sources) - 1
        # Splits that appear in an earlier source after the start of the job are not read.
        return [
            Split(f"{stage}/{split.id}", split.what)
            for stage in (range(last + 1) if first else [last])
            for split in self._of(stage).discover_splits(parallelism, first=first)
        ]

    def create_reader(self, split: Split, position: Any | None) -> SplitReader:
        stage, _, inner_id = split.id.partition("/")
        return _LateReader(self._of(int(stage)), Split(inner_id, split.what), position)

    def checkpoint_completed(self, positions: Mapping[str, Any]) -> None:
        for stage, connection in self._connections.items():
            start = f"{stage}/"
            own = {
                split_id.removeprefix(start): position
                for split_id, position in positions.items()
                if split_id.startswith(start) and position is not None
            }
            if own:
                connection.checkpoint_completed(own)

    def _of(self, stage: int) -> SourceConnection:
        if stage not in self._connections:
            self._connections[stage] = self._sources[stage].connect(self._subtask_index)
        return self._connections[stage]

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()


class _LateReader(SplitReader):
    """Opens its split at the first read, so that waiting sources hold no files and fetch nothing."""

    def __init__(self, connection: SourceConnection, split: Split, position: Any | None) -> None:
        self._connection = connection
        self._split = split
        self._position = position
        self._reader: SplitReader | None = None

    def read(self, max_records: int) -> Batch:
        if self._reader is None:
            self._reader = self._connection.create_reader(self._split, self._position)
        return self._reader.read(max_records)

    def position(self) -> Any:
        return self._position if self._reader is None else self._reader.position()

    @property
    def finished(self) -> bool:
        return self._reader is not None and self._reader.finished

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()


def _checked(call: str, source: Any) -> Source:
    if not isinstance(source, Source):
        raise TypeError(f"HybridSource.{call}() takes a Source, got {source!r}")
    return source
