"""Operator state in checkpoints: encode the named lists and maps of a subtask, and redistribute them on restore.

Elements are opaque bytes here; `operator_state.py` encodes and decodes them.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, cast

from ekorn.errors import CorruptFileError, StateMigrationError

__all__ = [
    "Elements",
    "Mode",
    "OperatorState",
    "decode_operator_state",
    "encode_operator_state",
    "redistribute",
]

Mode: TypeAlias = Literal["split", "union", "broadcast"]
Elements: TypeAlias = list[bytes] | list[tuple[bytes, bytes]]  # pairs for broadcast, plain elements otherwise
OperatorState: TypeAlias = dict[str, tuple[Mode, Elements]]

# docs/formats/operator-state.md
_MAGIC = b"EKOOPST"
_VERSION = 1
_HEADER = struct.Struct(">7sBI")  # magic, version, number of states
_STATE = struct.Struct(">IBQ")  # bytes of the name, mode, number of elements
_MODES: tuple[Mode, ...] = ("split", "union", "broadcast")


def encode_operator_state(states: Mapping[str, tuple[Mode, Elements]]) -> bytes:
    """Encode the operator state of one subtask."""
    out = [_HEADER.pack(_MAGIC, _VERSION, len(states))]
    for name, (mode, elements) in states.items():
        encoded = name.encode("utf-8")
        pieces = _flatten(mode, elements)
        out.append(_STATE.pack(len(encoded), _MODES.index(mode), len(elements)))
        out.append(encoded)
        out.append(struct.pack(f">{len(pieces)}Q", *map(len, pieces)))
        out.extend(pieces)
    return b"".join(out)


def decode_operator_state(payload: bytes, where: str = "operator state") -> OperatorState:
    """Decode what `encode_operator_state` returned; `where` names the bytes in an error.

    Raises:
        CorruptFileError: The bytes are damaged, foreign, or of a newer format.
    """
    cursor = _Cursor(payload, where)
    magic, version, count = _HEADER.unpack(cursor.take(_HEADER.size))
    if magic != _MAGIC:
        raise CorruptFileError(where, f"bytes that start with {bytes(magic)!r}", f"operator state ({_MAGIC!r})")
    if version != _VERSION:
        found = f"operator state format version {version}"
        raise CorruptFileError(where, found, f"version {_VERSION}, which is the newest this release reads")
    states: OperatorState = {}
    for _ in range(count):
        name_bytes, mode_index, element_count = _STATE.unpack(cursor.take(_STATE.size))
        if mode_index >= len(_MODES):
            raise CorruptFileError(where, f"redistribution mode {mode_index}", f"one of {_MODES}")
        mode = _MODES[mode_index]
        try:
            name = str(cursor.take(name_bytes), "utf-8")
        except UnicodeDecodeError:
            raise CorruptFileError(where, "a state name that is not UTF-8", "a state name") from None
        if name in states:
            raise CorruptFileError(where, f"state {name!r} twice", "each state once")
        piece_count = element_count * (2 if mode == "broadcast" else 1)
        sizes = struct.unpack(f">{piece_count}Q", cursor.take(8 * piece_count))
        pieces = [cursor.take(size) for size in sizes]
        states[name] = (mode, list(zip(pieces[::2], pieces[1::2], strict=True)) if mode == "broadcast" else pieces)
    if cursor.position != len(payload):
        raise CorruptFileError(where, f"{len(payload) - cursor.position} bytes too many", "the end of the states")
    return states


def redistribute(old: Sequence[OperatorState | None], new_parallelism: int, index: int) -> OperatorState:
    """Return the operator state that one new subtask starts from.

    Args:
        old: The states of every old subtask by index; None for a subtask that had finished and stored nothing.
        new_parallelism: The number of subtasks after the restore.
        index: The index of the new subtask.

    Example:
        >>> old = [{"s": ("split", [b"a", b"b", b"c"])}, {"s": ("split", [b"d", b"e"])}]
        >>> [redistribute(old, 3, i)["s"][1] for i in range(3)]
        [[b'a', b'b'], [b'c', b'd'], [b'e']]

    Raises:
        StateMigrationError: Two subtasks stored a state of one name with different modes.
    """
    assert 0 <= index < new_parallelism, f"subtask {index} of {new_parallelism}"
    unchanged = len(old) == new_parallelism
    result: OperatorState = {}
    first_with_more = 0  # the subtask that gets the next remainder; the index continues from state to state
    for name, mode in sorted(_modes(old).items()):
        lists = [states[name][1] for states in old if states is not None and name in states]
        if mode == "union":
            result[name] = (mode, cast(Elements, [element for elements in lists for element in elements]))
        elif mode == "broadcast":
            # All copies are equal by convention. Finished subtasks have no copy, so choose among the others.
            own = old[index] if unchanged else None
            copy = own[name][1] if own is not None and name in own else lists[index % len(lists)]
            result[name] = (mode, cast(Elements, list(copy)))
        elif unchanged:
            own = old[index]
            if own is not None and name in own:
                result[name] = (mode, cast(Elements, list(own[name][1])))
        else:
            everything = [element for elements in lists for element in elements]
            base, more = divmod(len(everything), new_parallelism)
            turn = (index - first_with_more) % new_parallelism
            start = turn * base + min(turn, more)
            end = start + base + (1 if turn < more else 0)
            result[name] = (mode, cast(Elements, everything[start:end]))
            first_with_more = (first_with_more + more) % new_parallelism
    return result


def _modes(old: Sequence[OperatorState | None]) -> dict[str, Mode]:
    modes: dict[str, Mode] = {}
    for states in old:
        for name, (mode, _) in (states or {}).items():
            known = modes.setdefault(name, mode)
            if known != mode:
                raise StateMigrationError(
                    f"operator state {name!r} is stored as a {known} list by one subtask and as {mode} by another; "
                    "request it in one way only, or restore an older checkpoint"
                )
    return modes


def _flatten(mode: Mode, elements: Elements) -> list[bytes]:
    if mode == "broadcast":
        return [piece for pair in cast("list[tuple[bytes, bytes]]", elements) for piece in pair]
    return cast("list[bytes]", elements)


class _Cursor:
    """Read forward through bytes, and refuse to read past their end."""

    def __init__(self, payload: bytes, where: str) -> None:
        self.payload = payload
        self.where = where
        self.position = 0

    def take(self, size: int) -> bytes:
        end = self.position + size
        if end > len(self.payload):
            raise CorruptFileError(self.where, f"{len(self.payload)} bytes", f"at least {end}")
        piece = self.payload[self.position : end]
        self.position = end
        return piece
