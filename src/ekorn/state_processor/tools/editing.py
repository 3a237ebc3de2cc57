"""Edits the keyed state of a savepoint by a function, key by key, into a new savepoint."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from ekorn.checkpoint.metadata import OperatorMetadata
from ekorn.checkpoint.signing import SigningKey
from ekorn.clock import Clock, SystemClock
from ekorn.errors import StateError, preview
from ekorn.keygroups import user_key
from ekorn.state.canonical_format import TableEntries
from ekorn.state.declared import Described, merged
from ekorn.state.keyed_backend import RestoredTable, RestoredTables, write_tables
from ekorn.state.snapshots import KeyedFiles, OperatorSnapshot, StateInfo
from ekorn.state_processor.columns import declared_column, fitted
from ekorn.state_processor.entry_columns import columns_of
from ekorn.state_processor.operator_identifier import OperatorIdentifier
from ekorn.state_processor.reading.entries import Values, pieces_of
from ekorn.state_processor.reading.state_rows import states_per_key
from ekorn.state_processor.reading.stored_savepoint import StoredOperator, configured_key, open_savepoint
from ekorn.state_processor.stand_ins import stand_ins_importable
from ekorn.state_processor.writing.new_savepoint import NewSavepoint, WrittenFiles, new_directory
from ekorn.types.data_types import VarCharType

__all__ = ["Edited", "edit_savepoint"]

EditKey = Callable[[Any, dict[str, Any]], dict[str, Any] | None]
"""Changes the states of a key: a dict of their values by name, in place or as the result. A state that is not in it
afterwards has no entry for the key any more."""


@dataclass
class Edited:
    """The outcome of an edit.

    Attributes:
        path: The new savepoint.
        keys: How many keys there were.
        changed: How many entries were changed or added.
        removed: How many entries were removed.
    """

    path: str = ""
    keys: int = 0
    changed: int = 0
    removed: int = 0


def edit_savepoint(
    path: str | os.PathLike[str],
    uid: OperatorIdentifier | str,
    edit: EditKey,
    new_path: str | os.PathLike[str],
    key: SigningKey | None = None,
) -> Edited:
    """Write a new savepoint in which the keyed state of one operator was changed by a function.

    Entries that the function does not change are written as they were, also if their classes cannot be imported. Timers
    and windows stay.

    Args:
        path: The savepoint or checkpoint, which is not changed.
        uid: The operator.
        edit: Called once for each key, with the key and the values of its states by name.
        new_path: A new directory.
        key: The key that the savepoint must be signed with, and that signs the new one; by default the one that
            `ekorn.checkpoint.signing-key-file` names in the configuration file, if it names one.

    Raises:
        StateError: The operator has no keyed state, or a value does not fit the type of its state.
    """
    key = key or configured_key()
    existing = open_savepoint(os.fspath(path), key)
    operator = existing.operator(uid)
    infos = states_per_key(operator)
    if not infos:
        raise StateError(
            f"operator {operator.label} has no keyed state declared by its program, and an edit changes only such "
            "state: change its windows, timers or operator state as rows, with the format ekorn-state"
        )
    found = existing.metadata
    with new_directory(os.fspath(new_path)) as files:
        savepoint = NewSavepoint(files, key, found.checkpoint_id, found.job_id, found.job_name)
        editor = _Editor(operator, infos, edit, SystemClock())
        operators = [
            editor.rewrite(savepoint)
            if stored.metadata.operator_id == operator.metadata.operator_id
            else savepoint.copied([stored])[0]
            for stored in existing.operators()
        ]
        savepoint.publish(operators)
        editor.edited.path = files.url
    return editor.edited


class _Editor:
    """Edits one operator."""

    def __init__(self, stored: StoredOperator, infos: list[StateInfo], edit: EditKey, clock: Clock) -> None:
        self.edited = Edited()
        self._stored = stored
        self._edit = edit
        self._clock = clock
        self._values = {info.name: Values(info) for info in infos}
        self._columns = {info.name: _column(info) for info in infos}

    def rewrite(self, savepoint: NewSavepoint) -> OperatorMetadata:
        """Write the operator's state files again: keyed state edited, operator state copied."""
        copied = savepoint.copied([replace(self._stored, metadata=_without_keyed(self._stored.metadata))])[0]
        target = WrittenFiles(savepoint.files, hashed=savepoint.key is not None)
        subtasks = tuple(
            None if before is None or now is None else replace(now, keyed=self._rewritten(before, target))
            for before, now in zip(self._stored.metadata.subtasks, copied.subtasks, strict=True)
        )
        now = {name: values.saved_as() for name, values in self._values.items()}
        states = [info if info.of_subtask else now.get(info.name, info) for info in self._stored.metadata.states]
        return replace(copied, subtasks=subtasks, states=merged(states))

    def _rewritten(self, snapshot: OperatorSnapshot, target: WrittenFiles) -> KeyedFiles | None:
        part = snapshot.keyed
        if part is None or not part.files:
            return part
        files = write_tables(self._edited_tables(part), target, target.exclusive)
        return KeyedFiles(part.key_group_first, part.key_group_last, files)

    def _edited_tables(self, part: KeyedFiles) -> Iterator[TableEntries]:
        for tables in pieces_of(self._stored, part):
            with stand_ins_importable():  # keys and values of missing classes are pickled again under their names
                self._edit_piece(tables)
                for info, entries in tables.values():
                    yield TableEntries(info, list(entries), list(entries.values()), [], full=True)

    def _edit_piece(self, tables: RestoredTables) -> None:
        mine = {name: tables[name].entries if name in tables else {} for name in self._values}
        for key in dict.fromkeys(key for entries in mine.values() for key in entries):
            self.edited.keys += 1
            self._edit_key(key, mine)
        for name, entries in mine.items():
            if entries and name not in tables:
                tables[name] = RestoredTable(self._values[name].info, entries)

    def _edit_key(self, key: Any, mine: dict[str, dict[Any, Any]]) -> None:
        before = {name: entries[key] for name, entries in mine.items() if key in entries}
        given = {name: self._values[name].load(kept) for name, kept in before.items()}
        after = self._after(user_key(key), given)
        unknown = [name for name in after if name not in self._values]
        if unknown:
            raise StateError(f"operator {self._stored.label} has no keyed state {unknown[0]!r}; it has {list(mine)}")
        for name in before.keys() - after.keys():
            del mine[name][key]
            self.edited.removed += 1
        for name, value in after.items():
            values, kept = self._values[name], before.get(name)
            if kept is not None and _is_same(values.load(kept), value):
                continue  # the bytes stay unchanged, so a value of a missing class is not touched
            self._check(name, key, value)
            stamps = None if kept is None else values.stamps(kept)
            mine[name][key] = values.store(value, stamps, self._clock.now_ms())
            self.edited.changed += 1

    def _after(self, key: Any, given: dict[str, Any]) -> dict[str, Any]:
        """Return the states of a key after the edit."""
        where = f"key {preview(key)} of operator {self._stored.label}"
        try:
            result: object = self._edit(key, given)
        except Exception as error:
            error.add_note(f"raised by the edit of {where}; no savepoint was written")
            raise
        if result is None:
            return given
        if not isinstance(result, dict):
            raise StateError(
                f"the edit of {where} returned {preview(result)}: return a dict of the states by name, or change the "
                "given dict and return None"
            )
        return result

    def _check(self, name: str, key: Any, value: Any) -> None:
        """Refuse a value that does not fit the kind or the declared type of the state."""
        column, kind = self._columns[name], self._values[name].info.kind
        columns = columns_of(kind)
        collection = columns.collection
        if collection is not None and not isinstance(value, collection):
            raise StateError(
                f"state {name!r} of key {preview(user_key(key))} is {kind} state and holds a {collection.__name__}, "
                f"got {preview(value)}"
            )
        if column is None:
            return
        for each in columns.values(value):
            try:
                misfit = isinstance(column, VarCharType) and not isinstance(each, str)
                fitted(each, column)
            except ValueError:
                misfit = True
            if misfit:
                text = self._values[name].info.type_text
                raise StateError(
                    f"state {name!r} of key {preview(user_key(key))} is declared as {text}, and cannot hold "
                    f"{preview(each)}"
                )


def _is_same(before: Any, after: Any) -> bool:
    """Return whether two values have the same pickle: 1 equals 1.0, and `==` of two arrays is an array."""
    try:
        return pickle.dumps(before) == pickle.dumps(after)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False  # a value that cannot be pickled is refused where it is stored, with the name of its state


def _column(info: StateInfo) -> Any:
    described = Described.decode(info.schema, info.name)
    return declared_column(described.value, described.classes)


def _without_keyed(metadata: OperatorMetadata) -> OperatorMetadata:
    subtasks = tuple(None if s is None else replace(s, keyed=None) for s in metadata.subtasks)
    return replace(metadata, subtasks=subtasks)
