"""`tamias state show`, `get`, `diff`, `export` and `edit`: commands for the state in savepoints, which need no job."""

from __future__ import annotations

import ast
import runpy
from collections.abc import Callable
from typing import Any

from tamias.cli.savepoint_commands import absolute, configured_key
from tamias.errors import ConfigurationError
from tamias.state.snapshots import StateInfo
from tamias.state_processor.editing import edit_savepoint
from tamias.state_processor.export import export_parquet
from tamias.state_processor.operator_identifier import OperatorIdentifier, is_operator_id
from tamias.state_processor.savepoint_inspection import differences, find_key, operators_in_both, summaries
from tamias.state_processor.state_rows import rows_by_key, rows_of_state, rows_of_timers
from tamias.state_processor.stored_savepoint import StoredOperator, StoredSavepoint, open_savepoint
from tamias.storage.locations import shown

__all__ = ["diff", "edit", "export", "get", "show"]


def show(path: str, uid: str | None, sample: int) -> int:
    """Print the number of entries of each state, and some of them."""
    savepoint = _opened(path)
    operators = savepoint.operators() if uid is None else [_operator(savepoint, uid)]
    for stored in operators:
        if not stored.metadata.has_state:
            continue
        print(f"operator {stored.label}")
        for summary in summaries(stored, sample):
            print(f"  {_text(summary.info)}: {summary.entries} {'entry' if summary.entries == 1 else 'entries'}")
            for line in summary.sample:
                print(f"    {line}")
    return 0


def get(path: str, uid: str, key_text: str) -> int:
    """Print all state of a key. The exit code is 1 if it has none."""
    stored, key = _operator(_opened(path), uid), key_of(key_text)
    found = find_key(stored, key)
    for info, namespace, value, stamps in found:
        at = "" if namespace is None else f" at {namespace!r}"
        last = "" if stamps is None else f"  (last access in ms: {stamps!r})"
        print(f"{_text(info)}{at}" + ("" if info.kind == "timers" else f": {value!r}{last}"))
    if not found:
        print(f"operator {stored.label} has no state of key {key!r}, which is a {type(key).__name__}")
    return 0 if found else 1


def diff(old: str, new: str, uid: str | None) -> int:
    """Print what changed between two savepoints. The exit code is 1 if anything did."""
    one, other = _opened(old), _opened(new)
    pairs = [(_operator(one, uid), _operator(other, uid))] if uid is not None else operators_in_both(one, other)
    count = 0
    for before, after in pairs:
        for info, (key, namespace), change, was, now in differences(before, after):
            at = "" if namespace is None else f" at {namespace!r}"
            values = {"added": repr(now), "removed": repr(was), "changed": f"{was!r} -> {now!r}"}[change]
            print(f"{change:8} {before.metadata.uid or before.metadata.operator_id} {info.name} {key!r}{at}: {values}")
            count += 1
    for missing, where in ((one, other), (other, one)):
        for stored in missing.operators() if uid is None else ():
            if stored.metadata.has_state and where.metadata.operator(stored.metadata.operator_id) is None:
                print(f"operator {stored.label} is in {shown(missing.url)} only")
                count += 1
    return 1 if count else 0


def export(path: str, uid: str, directory: str, *, state: str | None, timers: bool) -> int:
    """Write the keyed state of an operator as Parquet."""
    stored = _operator(_opened(path), uid)
    table = rows_of_timers(stored) if timers else rows_of_state(stored, state) if state else rows_by_key(stored)
    count = export_parquet(table, directory)
    print(f"wrote {count} rows of operator {stored.label} to {directory}")
    return 0


def edit(path: str, uid: str, function: str, new: str) -> int:
    """Write a new savepoint with edited state."""
    edited = edit_savepoint(absolute(path), _identifier(uid), _function(function), absolute(new), configured_key())
    did = f"{edited.changed} entries changed and {edited.removed} removed"
    print(f"wrote {shown(edited.path)}: {did}, of {edited.keys} keys")
    return 0


def _opened(path: str) -> StoredSavepoint:
    return open_savepoint(absolute(path), configured_key())


def _operator(savepoint: StoredSavepoint, uid: str) -> StoredOperator:
    return savepoint.operator(_identifier(uid))


def _identifier(uid: str) -> OperatorIdentifier:
    return OperatorIdentifier.for_uid_hash(uid) if is_operator_id(uid) else OperatorIdentifier.for_uid(uid)


def _text(info: StateInfo) -> str:
    return f"{info.name} ({info.summary})"


def key_of(text: str) -> Any:
    """Return the key that a text on the command line stands for.

    >>> key_of("7"), key_of("('a', 1)"), key_of("alice"), key_of("'7'")
    (7, ('a', 1), 'alice', '7')
    """
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _function(text: str) -> Callable[[Any, dict[str, Any]], dict[str, Any] | None]:
    path, colon, name = text.rpartition(":")
    if not colon or not path:
        raise ConfigurationError(f"{text!r} names no function: write FILE:FUNCTION, such as repair.py:edit")
    found: Callable[[Any, dict[str, Any]], dict[str, Any] | None] | None = runpy.run_path(path).get(name)
    if not callable(found):
        raise ConfigurationError(f"{path!r} has no function {name!r}")
    return found
