"""Finds two rows of one key that different tasks wrote, with memory that does not grow with the number of tasks.

Each task notes a digest of every key, by range of key groups, in a file beside the state files. When all tasks are
done, the digests of one range after another are compared. A key has 16 bytes, and the files are removed afterwards.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

from ekorn.errors import StateError, preview
from ekorn.extras import load
from ekorn.keygroups import user_key
from ekorn.state.canonical_format import decode_file
from ekorn.state.snapshots import StateFile
from ekorn.state.state_files import read_state, write_state
from ekorn.state_processor.writing.new_savepoint import new_file_name
from ekorn.storage.file_store import FileStore
from ekorn.types.by_value import dumps

__all__ = ["KeyDigests", "check_digests"]

_BYTES = 16


def _digest(stored_key: Any) -> bytes:
    return hashlib.blake2b(dumps(stored_key), digest_size=_BYTES).digest()


class KeyDigests:
    """The digests of the keys that one task writes."""

    def __init__(self, files: FileStore) -> None:
        self._files = files
        self._by_range: dict[int, bytearray] = {}

    def add(self, number: int, stored_key: Any) -> None:
        """Note a key of a range, in the form of tables."""
        self._by_range.setdefault(number, bytearray()).extend(_digest(stored_key))

    def finish(self) -> dict[int, StateFile]:
        """Write the digests, and return the files by range."""
        written = {}
        for number, digests in self._by_range.items():
            written[number] = write_state(self._files, f"keys-{new_file_name()}", bytes(digests), 0)
        self._by_range.clear()
        return written


def check_digests(
    files: FileStore, digest_files: Iterable[StateFile], state_files: Iterable[StateFile], *, of_entries: bool = False
) -> None:
    """Refuse a range in which a key has two rows; remove the files with its digests if none has.

    Args:
        files: The directory of the savepoint.
        digest_files: The digests of the range.
        state_files: The state of the range, in which the key is looked for.
        of_entries: Whether the digests are of pairs of a state and an address in it, instead of keys.

    Raises:
        StateError: A key, or an entry of a state, has two rows.
        CorruptFileError: A file of digests is not the one that a task wrote.
    """
    pyarrow = load("pyarrow", "a savepoint that Spark writes")
    compute = load("pyarrow", "a savepoint that Spark writes", "pyarrow.compute")
    written = list(digest_files)
    together = b"".join(read_state(files, file) for file in written)
    buffers = [None, pyarrow.py_buffer(together)]
    digests = pyarrow.FixedSizeBinaryArray.from_buffers(pyarrow.binary(_BYTES), len(together) // _BYTES, buffers)
    counts = compute.value_counts(digests)
    if len(counts) < len(digests):
        twice = {each["values"] for each in counts.filter(compute.greater(counts.field("counts"), 1)).to_pylist()}
        noted = ((state, key, (state, key) if of_entries else key) for state, key in _keys(files, state_files))
        found = next(((state, key) for state, key, digested in noted if _digest(digested) in twice), None)
        if of_entries and found is not None:
            raise StateError(
                f"state {found[0]!r} has two rows of the entry {preview(found[1])}, its key with its window if it has "
                "windows; group the DataFrame by both before you write it"
            )
        raise StateError(
            f"key {'a key' if found is None else preview(user_key(found[1]))} has two rows; a savepoint has one value "
            "per state and key: group the DataFrame by the key before you write it"
        )
    for file in written:
        assert file.path is not None, "digests are never kept inside the metadata"
        files.delete(file.path)


def _keys(files: FileStore, state_files: Iterable[StateFile]) -> Iterator[tuple[str, Any]]:
    for file in state_files:
        for table in decode_file(files, file, "the new savepoint"):
            for key in table.keys:
                yield table.name, key
