"""Raw state in checkpoints: bytes that functions write and read themselves, beside the named operator states.

Raw state is stored as operator state under names of the runtime (docs/formats/operator-state.md). A partition of raw
operator state is an element of a split list. The bytes of a key group are an element of a union list, after the number
of the key group: every subtask sees the elements of all subtasks, and keeps those of its own key groups.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from ekorn.errors import CorruptFileError, StateError
from ekorn.functions.state.raw_streams import (
    KeyedStateCheckpointOutputStream,
    KeyGroupStatePartitionStreamProvider,
    OperatorStateCheckpointOutputStream,
    StatePartitionStreamProvider,
)
from ekorn.keygroups import KeyGroupRange
from ekorn.state.operator_state_files import Mode, OperatorState
from ekorn.state.snapshots import RAW_KEYED, RAW_OPERATOR, StateInfo

__all__ = [
    "KeyGroupBytes",
    "RawOutputs",
    "RestoredRawState",
    "decode_key_group",
    "encode_key_group",
    "is_raw",
    "raw_info",
]

_PREFIX = "_raw/"
_KINDS: dict[Mode, str] = {"split": RAW_OPERATOR, "union": RAW_KEYED}
_KEY_GROUP = struct.Struct(">I")


class KeyGroupBytes(NamedTuple):
    """The raw keyed state of one key group."""

    key_group: int
    content: bytes


def is_raw(name: str) -> bool:
    """Return whether an operator state holds raw state."""
    return name.startswith(_PREFIX)


def raw_info(name: str, mode: Mode) -> StateInfo:
    """Return the description of a raw state."""
    return StateInfo(name, _KINDS[mode], "bytes")


def decode_key_group(element: bytes) -> KeyGroupBytes:
    """Decode an element of raw keyed state.

    Raises:
        CorruptFileError: The element is too short.
    """
    if len(element) < _KEY_GROUP.size:
        raise CorruptFileError("raw keyed state", f"an element of {len(element)} bytes", "a key group and its bytes")
    return KeyGroupBytes(_KEY_GROUP.unpack_from(element)[0], bytes(element[_KEY_GROUP.size :]))


def encode_key_group(key_group: int, content: bytes) -> bytes:
    """Encode what `decode_key_group` decodes."""
    return _KEY_GROUP.pack(key_group) + content


def _name(kind: str, function: int) -> str:
    """Return the name of the raw state of a function of an operator; a window has two functions."""
    return f"{_PREFIX}{kind}" if function == 0 else f"{_PREFIX}{kind}/{function}"


@dataclass
class RawOutputs:
    """The streams that one function of an operator writes in one `snapshot_state`."""

    function: int
    key_groups: KeyGroupRange | None  # None on a stream without keys
    key_group_of: Callable[[Any], int]
    _subtask: OperatorStateCheckpointOutputStream | None = field(default=None, init=False)
    _keyed: KeyedStateCheckpointOutputStream | None = field(default=None, init=False)

    def of_subtask(self) -> OperatorStateCheckpointOutputStream:
        """Return the stream of raw operator state."""
        if self._subtask is None:
            self._subtask = OperatorStateCheckpointOutputStream()
        return self._subtask

    def of_key_groups(self) -> KeyedStateCheckpointOutputStream:
        """Return the stream of raw keyed state.

        Raises:
            StateError: The stream has no keys.
        """
        if self.key_groups is None:
            raise StateError("raw keyed state needs a keyed stream: call key_by(...) before this function")
        if self._keyed is None:
            first, last = self.key_groups
            self._keyed = KeyedStateCheckpointOutputStream(range(first, last + 1), self.key_group_of)
        return self._keyed

    def take(self) -> OperatorState:
        """Close the streams and return what was written."""
        taken: OperatorState = {}
        if self._subtask is not None:
            taken[_name("operator", self.function)] = ("split", self._subtask.partitions())
            self._subtask.close()
        if self._keyed is not None:
            pieces = [encode_key_group(group, content) for group, content in self._keyed.by_key_group()]
            taken[_name("keyed", self.function)] = ("union", pieces)
            self._keyed.close()
        return taken


@dataclass(frozen=True)
class RestoredRawState:
    """The raw state that one function of an operator restores."""

    states: OperatorState
    function: int
    key_groups: KeyGroupRange | None

    def of_subtask(self) -> list[StatePartitionStreamProvider]:
        """Return the partitions of this subtask."""
        return [StatePartitionStreamProvider(bytes(element)) for element in self._elements("operator")]

    def of_key_groups(self) -> list[KeyGroupStatePartitionStreamProvider]:
        """Return the pieces of this subtask's key groups, in the order of the key groups."""
        if self.key_groups is None:
            return []
        first, last = self.key_groups
        found = sorted(decode_key_group(element) for element in self._elements("keyed"))
        return [KeyGroupStatePartitionStreamProvider(content, g) for g, content in found if first <= g <= last]

    def _elements(self, kind: str) -> Iterable[bytes]:
        return cast("list[bytes]", self.states.get(_name(kind, self.function), ("split", []))[1])
