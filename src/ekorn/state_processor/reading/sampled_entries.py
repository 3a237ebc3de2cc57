"""The first entries of a savepoint that a write is based on: what new keys and values are compared with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from ekorn.state.declared import Described
from ekorn.state.evolution.type_descriptions import PICKLED, Schema
from ekorn.state.snapshots import StateInfo
from ekorn.state_processor.reading.entries import Values, address_of, pieces_of
from ekorn.state_processor.reading.stored_savepoint import StoredOperator
from ekorn.state_processor.writing.written_values import to_program
from ekorn.types.data_type import DataType

__all__ = ["SampledEntry", "checked_keys", "sampled_entries"]

_SAMPLED_ENTRIES = 1000


class SampledEntry(NamedTuple):
    """An entry of the savepoint that a write is based on."""

    key: Any
    kept: Any
    value: Any


def sampled_entries(stored: StoredOperator, info: StateInfo) -> list[SampledEntry]:
    """Return the first entries of a state."""
    values = Values(info)
    return [
        SampledEntry(key, kept, values.load(kept)) for key, kept in islice(_entries(stored, info), _SAMPLED_ENTRIES)
    ]


def _entries(stored: StoredOperator, info: StateInfo) -> Iterator[tuple[Any, Any]]:
    for part in stored.parts():
        for tables in pieces_of(stored, part):
            if info.name in tables:
                for at, kept in tables[info.name].entries.items():
                    yield address_of(info, at).key, kept


def checked_keys(stored: StoredOperator, infos: Sequence[StateInfo], types: Mapping[str, DataType]) -> Schema:
    """Return the description of the keys, after checking that the column makes keys of the operator."""
    described = [Described.decode(info.schema, info.name) for info in infos]
    declared = next((each for each in described if each.key != PICKLED), Described())
    keys = [key for info in infos[:1] for key, _ in islice(_entries(stored, info), _SAMPLED_ENTRIES)]
    return to_program("'key'", types["key"], declared.key, declared.key_classes, keys, keys=True)
