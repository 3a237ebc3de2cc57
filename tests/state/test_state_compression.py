"""Compressed state files: smaller, read back, and never unpacked to more bytes than the metadata says."""

import random
import zlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekorn.errors import CorruptFileError
from ekorn.state.snapshots import StateFile
from ekorn.state.state_files import check_state, read_state, write_state
from ekorn.storage.memory import MemoryFiles

REPETITIVE = b"the same words again and again, " * 200


@given(payload=st.binary(max_size=300) | st.integers(0, 400).map(lambda n: b"abc" * n), threshold=st.integers(0, 100))
def test_compressed_state_reads_back(payload, threshold):
    store = MemoryFiles()
    kept = write_state(store, "shared/a", payload, threshold, compressed=True)
    assert kept.size <= len(payload)
    assert read_state(store, kept) == payload
    check_state(store, kept, full=False)
    check_state(store, kept, full=True)


def test_compressed_state_is_smaller_in_its_file():
    store = MemoryFiles()
    kept = write_state(store, "shared/a", REPETITIVE, 0, compressed=True)
    assert kept.raw_size == len(REPETITIVE)
    assert store.size("shared/a") < len(REPETITIVE) / 10


def test_what_does_not_get_smaller_is_stored_as_it_is():
    store, noise = MemoryFiles(), random.Random(1).randbytes(500)
    kept = write_state(store, "shared/a", noise, 0, compressed=True)
    assert kept.raw_size is None and store.read("shared/a").endswith(noise)


def test_a_flipped_bit_is_found_wherever_it_is():
    store = MemoryFiles()
    kept = write_state(store, "chk-1/a", REPETITIVE, 0, compressed=True)
    data = store.read("chk-1/a")
    for position in range(len(data)):
        flipped = bytearray(data)
        flipped[position] ^= 1
        store.replace("chk-1/a", bytes(flipped))
        with pytest.raises(CorruptFileError, match="chk-1/a"):
            read_state(store, kept)


@pytest.mark.parametrize("raw_size", [0, len(REPETITIVE) - 1, len(REPETITIVE) + 1])
def test_no_more_and_no_less_is_unpacked_than_was_promised(raw_size):
    store = MemoryFiles()
    kept = write_state(store, "chk-1/a", REPETITIVE, 0, compressed=True)
    with pytest.raises(CorruptFileError, match="other bytes when unpacked"):
        read_state(store, replace(kept, raw_size=raw_size))


def test_a_file_that_promises_more_than_it_can_hold_is_refused_before_it_is_unpacked():
    packed = zlib.compress(b"")
    proof = StateFile(size=len(packed), crc32=zlib.crc32(packed), inline=packed, raw_size=1 << 40)
    with pytest.raises(CorruptFileError, match="cannot contain that much"):
        read_state(MemoryFiles(), proof)


def test_bytes_that_are_no_compressed_state_are_refused():
    proof = StateFile(size=4, crc32=zlib.crc32(b"rubb"), inline=b"rubb", raw_size=100)
    with pytest.raises(CorruptFileError, match="cannot be unpacked"):
        read_state(MemoryFiles(), proof)


def test_file_and_metadata_must_agree_on_whether_it_is_compressed():
    store = MemoryFiles()
    kept = write_state(store, "chk-1/a", REPETITIVE, 0, compressed=True)
    with pytest.raises(CorruptFileError, match="state that is compressed"):
        read_state(store, replace(kept, raw_size=None))
