"""`CollectionSource`: reads a collection that the program holds in memory."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from typing import Any

import cloudpickle

from ekorn.errors import InvalidProgramError, RecordTypeError, preview
from ekorn.functions.source_contract import Batch, Boundedness, Source, Split, SplitReader
from ekorn.graph.stream_graph import calling_line
from ekorn.types.type_information import TypeInformation

_CHUNK_RECORDS = 4096


class CollectionSource(Source):
    """Reads a collection once, in its order. The position of a reader is the number of records read.

    The records are kept pickled, in chunks. A reader unpickles new objects, so a function that changes its input does
    not change the records that are read again after a failure.
    """

    def __init__(self, elements: Iterable[Any], type_info: TypeInformation | None = None) -> None:
        records = checked_elements(elements)
        if type_info is not None:
            records = _narrowed(records, type_info)
        self._count = len(records)
        self._chunks = [
            _pickled(records[start : start + _CHUNK_RECORDS], start) for start in range(0, len(records), _CHUNK_RECORDS)
        ]

    @property
    def boundedness(self) -> Boundedness:
        """Return BOUNDED."""
        return Boundedness.BOUNDED

    def discover_splits(self, parallelism: int) -> Sequence[Split]:
        """Return one split, so that the order is kept."""
        return [Split("all")]

    def create_reader(self, split: Split, position: Any | None) -> SplitReader:
        """Open the collection behind the records that an earlier reader has read."""
        return _CollectionReader(self._chunks, self._count, position or 0)

    def __repr__(self) -> str:
        return f"CollectionSource({self._count} records)"


class _CollectionReader(SplitReader):
    def __init__(self, chunks: list[bytes], count: int, position: int) -> None:
        self._chunks = chunks
        self._count = count
        self._position = position
        self._open_chunk = -1
        self._records: list[Any] = []

    def read(self, max_records: int) -> Batch:
        number, offset = divmod(self._position, _CHUNK_RECORDS)
        if self._position >= self._count:
            return Batch([])
        if number != self._open_chunk:
            self._records = pickle.loads(self._chunks[number])
            self._open_chunk = number
        values = self._records[offset : offset + max_records]
        self._position += len(values)
        return Batch(values)

    def position(self) -> int:
        return self._position

    @property
    def finished(self) -> bool:
        return self._position >= self._count


def checked_elements(elements: Iterable[Any]) -> list[Any]:
    """Return the records of a collection as a list, or raise a TypeError if it is not a collection."""
    if isinstance(elements, (str, bytes, dict)):
        raise TypeError(
            f"from_collection() needs a collection of records, got the single {type(elements).__name__} "
            f"{preview(elements)}; put it into a list"
        )
    if not isinstance(elements, Iterable):
        raise TypeError(f"from_collection() needs a collection of records, got {elements!r}")
    return list(elements)


def _narrowed(records: list[Any], type_info: TypeInformation) -> list[Any]:
    """Return the records as the declared type has them; an error names the position of the record."""
    narrow, narrowed = type_info.narrow, []
    try:
        for record in records:
            narrowed.append(narrow(record))
    except RecordTypeError as error:
        element = f"element {len(narrowed)} (counted from 0) of from_collection() at {calling_line()}"
        raise RecordTypeError(error.declared, error.value_preview, error.reason, element) from None
    return narrowed


def _pickled(records: list[Any], start: int) -> bytes:
    try:
        return bytes(cloudpickle.dumps(records))
    except Exception as error:  # pickling runs code of the user, which may raise any exception
        for index, record in enumerate(records):
            try:
                cloudpickle.dumps(record)
            except Exception:
                raise InvalidProgramError(
                    f"from_collection(): record {start + index}, {preview(record)}, cannot be sent to a slot: {error}"
                ) from error
        raise
