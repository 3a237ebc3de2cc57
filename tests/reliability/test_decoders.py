"""Everything that reads bytes from a disk or a network reads any bytes, or refuses them with an error of ekorn.

A checksum finds damaged bytes first (`test_bit_flips.py`). Here the checksum is right, or there is none: the bytes come
from another program, a bug, or an attacker. Pickles of the user's values are left out: Python itself reads them, after
ekorn has checked their checksum and origin.
"""

from __future__ import annotations

import random
import socket
import struct
import threading
import zlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.checkpoint.metadata_file import decode_metadata
from ekorn.checkpoint.owner_files import encode_owner_file, read_owner_file
from ekorn.checkpoint.savepoint_notes import SavepointNotes
from ekorn.errors import EkornError
from ekorn.links.link import accept
from ekorn.state.canonical_format import decode_file
from ekorn.state.operator_state_files import decode_operator_state, encode_operator_state
from ekorn.state.rocksdb.instance import read_meta
from ekorn.state.rocksdb.key_bytes import address_of, read_part
from ekorn.state.rocksdb.value_bytes import decode, decode_stamped, encode, encode_stamped, without_original
from ekorn.state.snapshots import StateFile
from ekorn.state.state_files import COMPRESSED, read_state
from ekorn.storage.memory import MemoryFiles
from ekorn.types.by_value import dumps

EXAMPLES = settings().max_examples * 5


def state_file(data: bytes) -> Any:
    """Read a whole state file through the reference that its writer would have given."""
    store = MemoryFiles()
    store.write("f", data)
    payload = data[24:]
    flags = int.from_bytes(data[10:12], "big")
    raw_size = int.from_bytes(data[:4], "big") % 10_000 if flags == COMPRESSED else None
    return read_state(store, StateFile(len(payload), zlib.crc32(payload), path="f", raw_size=raw_size))


def inflated(data: bytes) -> Any:
    """Read the payload of a state file whose header says that it is compressed."""
    header = struct.pack(">8sHHIQ", b"EKOSTATE", 1, COMPRESSED, zlib.crc32(data), len(data))
    store = MemoryFiles()
    store.write("f", header + data)
    return read_state(store, StateFile(len(data), zlib.crc32(data), path="f", raw_size=1_000))


def heap_entries(data: bytes) -> Any:
    """Read the keyed state of a savepoint: chunks, each after its length."""
    file = StateFile(len(data), zlib.crc32(data), inline=data)
    return list(decode_file(MemoryFiles(), file))


def metadata(data: bytes) -> Any:
    header = f"EKORN-CHECKPOINT 1 {len(data)} {zlib.crc32(data):08x}\n"
    return decode_metadata(header.encode() + data, "_metadata")


def owner_file(data: bytes) -> Any:
    store = MemoryFiles()
    store.write("owner/claim-000001", data)
    return read_owner_file(store, "owner/claim-000001")


def note(data: bytes) -> Any:
    store = MemoryFiles()
    store.write("savepoints/7", data)
    return SavepointNotes(store).addresses()


def rocksdb_tables(data: bytes) -> Any:
    return read_meta(SimpleNamespace(get=lambda key: data, folder="here"))  # type: ignore[arg-type]


def rocksdb_value(data: bytes) -> Any:
    if data[:1] == b"\x80":
        return None  # a pickle
    return decode(data)


def rocksdb_stamped(data: bytes) -> Any:
    return decode_stamped(data) if data[9:10] != b"\x80" else None


CHUNK = dumps(("count", "value", [1, 2], [3, 4], [5]))
DECODERS: dict[str, tuple[Callable[[bytes], Any], bytes]] = {
    "metadata": (metadata, b'{"checkpoint_id": 1, "job_id": "j", "job_name": "n", "timestamp_ms": 1, "term": 1, '
                 b'"kind": "savepoint", "operators": [{"id": "a", "uid": null, "name": "x", "parallelism": 1, '
                 b'"max_parallelism": 8, "finished": [], "states": [], "subtasks": [null]}]}'),
    "state file": (state_file, struct.pack(">8sHHIQ", b"EKOSTATE", 1, 0, zlib.crc32(b"abc"), 3) + b"abc"),
    "compressed state": (inflated, zlib.compress(b"x" * 1_000)),
    "operator state": (decode_operator_state, encode_operator_state({"s": ("union", [b"ab", b""])})),
    "owner of a directory": (owner_file, encode_owner_file({"term": 1})),
    "note of a savepoint": (note, b'{"checkpoint_id": 7, "path": "/somewhere"}'),
    "tables of rocksdb": (rocksdb_tables, b'{"version": 1, "next_piece": 3, "states": [[1, "count", "value", false]]}'),
    "address in rocksdb": (lambda data: read_part(data, 0), address_of(("a", (1, b"b"), 2.0, None), 128, 7)[0][4:]),
    "value in rocksdb": (rocksdb_value, encode("text")),
    "stamped value in rocksdb": (rocksdb_stamped, encode_stamped((7, 12.5))),
    "value behind an address in rocksdb": (without_original, b"o\x00\x00\x00\x03abcN"),
}  # fmt: skip


def spoiled(good: bytes) -> st.SearchStrategy[bytes]:
    """Make random bytes, or good bytes that were cut, changed or extended."""
    places = st.integers(0, len(good))
    change = st.tuples(places, places, st.binary(max_size=8))
    changed = st.lists(change, min_size=1, max_size=3).map(lambda changes: _spoil(good, changes))
    return st.one_of(st.binary(max_size=100), changed, st.integers(1, 3_000).map(lambda n: b"[" * n))


def _spoil(good: bytes, changes: list[tuple[int, int, bytes]]) -> bytes:
    for start, end, new in changes:
        good = good[:start] + new + good[max(start, end) :]
    return good


@pytest.mark.parametrize("name", DECODERS)
def test_damaged_bytes_raise_no_errors_but_those_of_ekorn(name: str) -> None:
    read, good = DECODERS[name]
    assert read(good), "the unchanged example can be read"

    @given(spoiled(good))
    @settings(max_examples=EXAMPLES)
    def check(data: bytes) -> None:
        try:
            read(data)
        except EkornError as error:
            assert str(error)

    check()


@pytest.mark.soak
@pytest.mark.parametrize("name", DECODERS)
def test_a_hundred_thousand_damaged_inputs_raise_no_errors_but_those_of_ekorn(name: str) -> None:
    """Together the decoders read more than a million inputs. Hypothesis would take hours to make as many."""
    read, good = DECODERS[name]
    chance = random.Random(28)
    for number in range(100_000):
        data = _spoiled_at_random(good, chance)
        try:
            read(data)
        except EkornError:
            continue
        except Exception as error:
            raise AssertionError(f"input {number} of {name}: {data!r}") from error


def _spoiled_at_random(good: bytes, chance: random.Random) -> bytes:
    if chance.random() < 0.1:
        return chance.randbytes(chance.randrange(100))
    for _ in range(chance.randint(1, 3)):
        start = chance.randrange(len(good) + 1)
        match chance.randrange(5):
            case 0:  # cut
                good = good[:start]
            case 1:  # one bit
                good = (
                    good[:start]
                    + bytes(b ^ 1 << chance.randrange(8) for b in good[start : start + 1])
                    + good[start + 1 :]
                )
            case 2:  # a number that is too large, or negative
                good = good[:start] + chance.choice((b"\xff" * 4, b"\x7f" * 8, b"-1", b"9" * 30)) + good[start + 4 :]
            case 3:  # a part twice
                good = good[:start] + good[start // 2 :]
            case _:
                good = good[:start] + chance.randbytes(chance.randrange(8)) + good[start + chance.randrange(8) :]
    return good


@given(st.data())
def test_chunks_of_keyed_state_are_whole_or_refused(data: st.DataObject) -> None:
    """Change everything around a pickle. A changed pickle could be any program, so the pickle itself stays."""
    entries = dumps(([1, 2], [3, 4], [5]))
    good = struct.pack(">IBQ", 5, 5, len(entries)) + b"countvalue" + entries
    assert heap_entries(b"EKOK\x01" + good * 2) == [("count", "value", [1, 2], [3, 4], [5])] * 2
    other = dumps(data.draw(st.recursive(st.integers() | st.text(), st.lists, max_leaves=5) | st.tuples(st.text())))
    inner = data.draw(st.sampled_from([entries, entries[: data.draw(st.integers(0, len(entries)))], other, b""]))
    sizes = st.sampled_from([0, 5, 6, 200])
    length = data.draw(st.sampled_from([len(inner), len(inner) + 1, 2**64 - 1, 0]))
    head = struct.pack(">IBQ", data.draw(sizes), data.draw(sizes), length) + data.draw(st.binary(max_size=12))
    version = data.draw(st.sampled_from([b"\x01", b"\x02", b""]))
    try:
        heap_entries(b"EKOK" + version + good + head + inner + data.draw(st.binary(max_size=3)))
    except EkornError as error:
        assert "inline state" in str(error)


@given(st.lists(st.binary(min_size=1, max_size=100), max_size=4))
def test_no_handshake_of_a_stranger_is_accepted(said: list[bytes]) -> None:
    here, there = socket.socketpair()
    admitted: list[Any] = []
    door = threading.Thread(target=lambda: admitted.append(accept(here, b"s" * 32)))
    door.start()
    try:
        there.settimeout(30)
        for part in said:
            there.sendall(part)
        there.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # the listener closed the connection before everything was sent
    door.join(60)
    there.close()
    assert admitted == [None]
