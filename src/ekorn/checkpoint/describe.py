"""Describes a checkpoint or savepoint in words: its job, and the kind, type and size of its states.

Only the metadata is read: no state is loaded, nothing is unpickled. Anyone may have written it, so characters that
could steer a terminal are escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from ekorn.checkpoint.metadata import CheckpointMetadata, OperatorMetadata
from ekorn.checkpoint.restore_point import resolve
from ekorn.checkpoint.signing import SigningKey
from ekorn.config.value_text import size_text
from ekorn.errors.base import printable
from ekorn.state.snapshots import StateFile, StateInfo

__all__ = ["describe", "describe_metadata"]


def describe(path: str, key: SigningKey | None = None) -> str:
    """Describe what a savepoint or checkpoint holds.

    Args:
        path: Its directory or its `_metadata` file.
        key: The key that it must be signed with; None accepts what is not signed.

    Raises:
        RestoreError: The path holds no checkpoint and no savepoint.
        CorruptFileError: The metadata cannot be read.
    """
    files, metadata = resolve(path, key)
    return describe_metadata(metadata, files.url)


def describe_metadata(metadata: CheckpointMetadata, where: str) -> str:
    """Describe a checkpoint from its metadata; `where` is the place of its files."""
    return "\n".join(_lines(metadata, where))


def _lines(metadata: CheckpointMetadata, where: str) -> Iterator[str]:
    yield f"{metadata.kind} {metadata.checkpoint_id} of job {metadata.job_name!r} ({printable(metadata.job_id)})"
    yield f"  taken     {_time_text(metadata.timestamp_ms)}"
    yield f"  files in  {where}"
    yield f"  state     {_amount(list(metadata.files()))}"
    for operator in metadata.operators:
        yield ""
        yield from _operator(operator)


def _operator(operator: OperatorMetadata) -> Iterator[str]:
    yield f"operator {operator.name!r}"
    yield f"  uid          {'none' if operator.uid is None else repr(operator.uid)}"
    yield f"  id           {operator.operator_id}"
    yield f"  parallelism  {operator.parallelism}, at most {operator.max_parallelism}{_finished(operator)}"
    keyed = [f for s in operator.subtasks if s is not None and s.keyed is not None for f in s.keyed.files]
    listed = [s.operator_state for s in operator.subtasks if s is not None and s.operator_state is not None]
    if keyed:
        yield f"  keyed        {_amount(keyed)}"
    if listed:
        yield f"  operator     {_amount(listed)}"
    in_flight = [f for part in operator.in_flight if part is not None for f in part.files]
    if in_flight:
        yield f"  in flight    {_amount(in_flight)}"
    if operator.states:
        yield from _table([("state", "kind", "type"), *(_row(info) for info in operator.states)])
    elif not operator.has_state:
        yield "  no state"


def _time_text(timestamp_ms: int) -> str:
    try:
        return f"{datetime.fromtimestamp(timestamp_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):  # a wrong time must not hide the rest
        return f"{timestamp_ms} ms after 1970"


def _finished(operator: OperatorMetadata) -> str:
    if operator.fully_finished:
        return "; finished"
    count = sum(operator.finished)
    return f"; {count} of them finished" if count else ""


def _row(info: StateInfo) -> tuple[str, str, str]:
    type_text = f"{info.type_text}, with time-to-live" if info.ttl else info.type_text
    return printable(info.name), printable(info.kind), printable(type_text)


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield ("    " + "  ".join(cells)).rstrip()


def _amount(files: Sequence[StateFile]) -> str:
    """Return the size of the state, and where it is. Shared files are counted once."""
    outside = {file.path: file for file in files if file.path is not None}
    inside = [file for file in files if file.path is None]
    size = sum(file.size for file in (*outside.values(), *inside))
    if not outside:
        return f"{size_text(size)} inside the metadata" if inside else "none"
    return f"{size_text(size)} in {len(outside)} file{'s' if len(outside) > 1 else ''}"
