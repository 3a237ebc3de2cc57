"""Bounded sources of the DataStream API as inputs: databases, lakes, Kafka up to an offset."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ekorn.errors import MalformedInputError, MalformedRecordError
from ekorn.functions.source_contract import Source, Split, SplitReader

__all__ = ["BoundedSourceInput", "records_of"]

_RECORDS_AT_A_TIME = 2048
_PAUSE_SECONDS = 0.01


@dataclass(frozen=True, eq=False)
class BoundedSourceInput:
    """The records of a source that ends."""

    source: Source

    def splits(self, parallelism: int, parameters: Mapping[str, str]) -> Sequence[SourceSplit]:
        """Return the splits that the source has now."""
        connection = self.source.connect(0)
        try:
            found = connection.discover_splits(parallelism, first=True)
            return [SourceSplit(self.source, split) for split in found]
        finally:
            connection.close()


@dataclass(frozen=True, eq=False)
class SourceSplit:
    """One split of a source."""

    source: Source
    split: Split

    def read(self) -> Iterator[Any]:
        """Yield the records, over a connection of its own."""
        connection = self.source.connect(0)
        try:
            yield from records_of(connection.create_reader(self.split, None))
        finally:
            connection.close()


def records_of(reader: SplitReader, *, skips_malformed: bool = False) -> Iterator[Any]:
    """Yield all records of a reader, then close it.

    Args:
        reader: The reader.
        skips_malformed: Whether content that is not a record is passed over. Otherwise its error is raised.
    """
    try:
        while not reader.finished:
            batch = reader.read(_RECORDS_AT_A_TIME)
            if batch.malformed and not skips_malformed:
                raise _without_options_of_streams(batch.malformed[0].error)
            if not batch.values and not batch.malformed and not reader.finished:
                time.sleep(_PAUSE_SECONDS)  # the system has none at the moment
            yield from batch.values
    finally:
        reader.close()


def _without_options_of_streams(error: Exception) -> Exception:
    """Return the error about malformed content with the advice for DataSet programs."""
    return MalformedInputError(*error.args) if isinstance(error, MalformedRecordError) else error
