"""Raw state: bytes that a function writes into a checkpoint itself, and reads back when it is restored.

Managed state has names and types, and a backend keeps it. Raw state is for a function with structures of its own: it
writes them as bytes in `snapshot_state` and reads the bytes in `initialize_state`. A checkpoint has the raw state that
its own `snapshot_state` wrote, and nothing of earlier checkpoints.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ekorn.errors import StateError

__all__ = [
    "KeyGroupStatePartitionStreamProvider",
    "KeyedStateCheckpointOutputStream",
    "OperatorStateCheckpointOutputStream",
    "StatePartitionStreamProvider",
]


class _RawOutput(io.RawIOBase):
    """A stream of bytes that is cut into pieces. It can be written to until `snapshot_state` returns."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[io.BytesIO] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        """Append bytes to the piece that was started last."""
        self._check_open()
        if not self._pieces:
            self._start_first()
        return self._pieces[-1].write(data)

    def _start_first(self) -> None:
        self._pieces.append(io.BytesIO())

    def _check_open(self) -> None:
        if self.closed:
            raise StateError("a raw state stream can be written to only until snapshot_state returns")


class OperatorStateCheckpointOutputStream(_RawOutput):
    """The raw state of a subtask that has no key, in partitions. Rescaling distributes whole partitions.

    Example:
        >>> out = OperatorStateCheckpointOutputStream()
        >>> for part in (b"one", b"two"):
        ...     out.start_new_partition()
        ...     _ = out.write(part)
        >>> out.partitions()
        [b'one', b'two']
    """

    def start_new_partition(self) -> None:
        """Begin a new partition. Bytes that are written before the first call are a partition too."""
        self._check_open()
        self._pieces.append(io.BytesIO())

    def get_number_of_partitions(self) -> int:
        """Return how many partitions were started."""
        return len(self._pieces)

    def partitions(self) -> list[bytes]:
        """Return the bytes of each partition, in order."""
        return [piece.getvalue() for piece in self._pieces]


class KeyedStateCheckpointOutputStream(_RawOutput):
    """The raw state of a subtask's keys, one piece for each key group. Rescaling moves whole key groups."""

    def __init__(self, key_groups: range, key_group_of: Callable[[Any], int]) -> None:
        """Create an empty stream.

        Args:
            key_groups: The key groups of the subtask.
            key_group_of: Returns the key group of a key.
        """
        super().__init__()
        self._key_groups = key_groups
        self._key_group_of = key_group_of
        self._groups: list[int] = []

    def get_key_group_list(self) -> list[int]:
        """Return the key groups of this subtask."""
        return list(self._key_groups)

    def key_group_of(self, key: Any) -> int:
        """Return the key group of a key of the stream."""
        return self._key_group_of(key)

    def start_new_key_group(self, key_group: int) -> None:
        """Begin the bytes of a key group.

        Raises:
            StateError: Another subtask has the key group, or it was started before.
        """
        self._check_open()
        if key_group not in self._key_groups:
            raise StateError(
                f"raw keyed state: this subtask has the key groups {self._key_groups[0]} to {self._key_groups[-1]}, "
                f"not {key_group}; take key groups from get_key_group_list() or key_group_of()"
            )
        if key_group in self._groups:
            raise StateError(f"raw keyed state: key group {key_group} was started before; write all its bytes at once")
        self._groups.append(key_group)
        self._pieces.append(io.BytesIO())

    def _start_first(self) -> None:
        raise StateError("raw keyed state: call start_new_key_group() before write()")

    def by_key_group(self) -> list[tuple[int, bytes]]:
        """Return the bytes of each key group that was started, in order."""
        return [(group, piece.getvalue()) for group, piece in zip(self._groups, self._pieces, strict=True)]


@dataclass(frozen=True)
class StatePartitionStreamProvider:
    """One restored partition of raw operator state."""

    content: bytes

    def get_stream(self) -> io.BytesIO:
        """Return the bytes as a stream that can be read from its beginning."""
        return io.BytesIO(self.content)


@dataclass(frozen=True)
class KeyGroupStatePartitionStreamProvider(StatePartitionStreamProvider):
    """The restored raw keyed state of one key group."""

    key_group: int

    def get_key_group_id(self) -> int:
        """Return the key group."""
        return self.key_group
