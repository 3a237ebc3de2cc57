"""State files: what is checked of a file without reading it, and bytes that are not what they should be."""

import hashlib
import zlib
from dataclasses import replace

import pytest

from ekorn.errors import CorruptFileError, StateError, StateMigrationError
from ekorn.state.evolution.pickled_classes import loads
from ekorn.state.rocksdb.value_bytes import split_original, with_original, without_original
from ekorn.state.snapshots import StateFile
from ekorn.state.state_files import (
    MOST_INFLATED,
    STATE_HEADER_BYTES,
    check_state,
    copy_state,
    hashed_state,
    inline_state,
    read_state,
    write_state,
)
from ekorn.storage.memory import MemoryFiles
from ekorn.types.by_value import dumps


@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data + b"x"], ids=["shorter", "longer"])
def test_another_size_is_found_without_reading_the_file(change):
    store = MemoryFiles()
    file = write_state(store, "shared/a", b"x" * 20, 0)
    check_state(store, file, full=False)
    data = change(store.read("shared/a"))
    store.replace("shared/a", data)
    with pytest.raises(CorruptFileError, match=rf"shared/a.*{len(data)} bytes"):
        check_state(store, file, full=False)


def test_a_missing_file_is_found_without_reading_it():
    store = MemoryFiles()
    file = write_state(store, "shared/a", b"x" * 20, 0)
    store.delete("shared/a")
    for full in (False, True):
        with pytest.raises(CorruptFileError, match=r"shared/a.*no such file"):
            check_state(store, file, full=full)


def test_other_bytes_of_the_same_size_are_found_by_reading():
    store = MemoryFiles()
    file = write_state(store, "shared/a", b"x" * 20, 0)
    store.replace("shared/a", store.read("shared/a")[:-1] + b"y")
    check_state(store, file, full=False)
    with pytest.raises(CorruptFileError, match="crc32"):
        check_state(store, file, full=True)


@pytest.mark.parametrize("data", [b"", b"junk", dumps([1, 2, 3])[:-2], b"\x80\xff."])
def test_bytes_that_are_no_pickle_are_refused_with_their_beginning(data):
    with pytest.raises(CorruptFileError, match=r"the place.*not a pickle"):
        loads(data, "the place")


def test_a_key_whose_class_is_gone_is_refused_with_what_to_do():
    with pytest.raises(StateMigrationError, match=r"the place: the class of a key no longer exists.*restore the class"):
        loads(b"ctests.state.test_state_files\nMissing\n.", "the place")


def test_the_original_of_an_address_is_read_back_with_its_value():
    data = with_original(("a", 1), b"sx")
    assert split_original(data) == (("a", 1), b"sx")
    assert without_original(data) == b"sx"
    assert split_original(b"sx") == (None, b"sx")
    assert without_original(b"sx") == b"sx"


def test_a_value_that_breaks_off_is_refused():
    data = with_original(("a", 1), b"")
    assert split_original(data) == (("a", 1), b"")
    for end in range(1, len(data)):
        for read in (split_original, without_original):
            with pytest.raises(StateError, match="RocksDB holds a value that breaks off"):
                read(data[:end])


# ------------------------------------------------------------------------------------------------ where a payload goes


@pytest.mark.parametrize(("threshold", "is_inline"), [(0, False), (19, False), (20, False), (21, True)])
def test_a_payload_below_the_threshold_travels_in_the_metadata(threshold, is_inline):
    store = MemoryFiles()
    kept = write_state(store, "shared/a", b"x" * 20, threshold)
    assert (kept.inline, kept.path) == ((b"x" * 20, None) if is_inline else (None, "shared/a"))
    assert store.exists("shared/a") is not is_inline
    assert (kept.size, kept.crc32, kept.raw_size, kept.sha256) == (20, zlib.crc32(b"x" * 20), None, None)
    assert read_state(store, kept) == b"x" * 20


def test_a_file_of_a_signed_checkpoint_has_a_digest_and_what_is_inside_the_metadata_has_none():
    store = MemoryFiles()
    assert write_state(store, "shared/a", b"state", 0, hashed=True).sha256 == hashlib.sha256(b"state").hexdigest()
    assert write_state(store, "shared/b", b"state", 99, hashed=True).sha256 is None


def test_a_payload_that_compression_leaves_as_long_as_it_is_stays_as_it_is():
    same = next(b"a" * n for n in range(1, 50) if len(zlib.compress(b"a" * n, 1)) == n)
    assert inline_state(same, compressed=True) == inline_state(same)
    assert inline_state(same + b"a" * 20, compressed=True).raw_size == len(same) + 20


# --------------------------------------------------------------------------------------------------- copies and digests


def damaged(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


@pytest.mark.parametrize("hashed", [False, True])
@pytest.mark.parametrize("compressed", [False, True])
def test_a_payload_is_copied_to_another_store_after_it_was_checked(compressed, hashed):
    store, target = MemoryFiles(), MemoryFiles()
    file = write_state(store, "shared/a", b"state" * 50, 0, compressed=compressed)
    copied = copy_state(store, file, target, "b", hashed=hashed)
    payload = store.read("shared/a")[STATE_HEADER_BYTES:]
    assert copied == replace(file, path="b", sha256=hashlib.sha256(payload).hexdigest() if hashed else None)
    assert target.read("b") == store.read("shared/a")
    assert read_state(target, copied) == b"state" * 50


def test_a_damaged_or_missing_payload_is_not_copied_and_gets_no_digest():
    store, target = MemoryFiles(), MemoryFiles()
    file = write_state(store, "shared/a", b"state", 0)
    store.replace("shared/a", damaged(store.read("shared/a")))
    missing = replace(file, path="shared/b")
    for each in (file, missing, replace(inline_state(b"state"), inline=b"stat!")):
        with pytest.raises(CorruptFileError):
            copy_state(store, each, target, "c", hashed=True)
        with pytest.raises(CorruptFileError):
            hashed_state(store, each)
    assert target.list() == []


def test_a_payload_inside_the_metadata_stays_there():
    store, target = MemoryFiles(), MemoryFiles()
    file = inline_state(b"state")
    assert copy_state(store, file, target, "b", hashed=True) == file
    assert hashed_state(store, file) == file
    assert target.list() == []


def test_a_digest_is_that_of_the_payload_and_other_bytes_are_refused_by_it():
    store = MemoryFiles()
    file = hashed_state(store, write_state(store, "shared/a", b"state", 0))
    assert file.sha256 == hashlib.sha256(b"state").hexdigest()
    assert read_state(store, file) == b"state"
    with pytest.raises(CorruptFileError, match="which the metadata signs"):
        read_state(store, replace(file, sha256="0" * 64))


# ---------------------------------------------------------------------------------------------------- damaged bytes


def test_a_file_shorter_than_its_header_and_a_header_alone_are_refused():
    store = MemoryFiles()
    file = write_state(store, "shared/a", b"state", 0)
    whole = store.read("shared/a")
    assert len(whole) == STATE_HEADER_BYTES + 5
    store.replace("shared/a", whole[: STATE_HEADER_BYTES - 1])
    with pytest.raises(CorruptFileError, match=f"{STATE_HEADER_BYTES - 1} bytes, less than a header"):
        read_state(store, file)
    store.replace("shared/a", whole[:STATE_HEADER_BYTES])
    with pytest.raises(CorruptFileError, match="0 bytes of state"):
        read_state(store, file)
    empty = write_state(store, "shared/b", b"", 0)
    assert read_state(store, empty) == b""


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (0, b"X", "a file that starts with"),
        (8, b"\0\2", "state format version 2 with flags 0x0"),
        (8, b"\0\0", "state format version 0"),
        (10, b"\0\2", "state format version 1 with flags 0x2"),
        (10, b"\0\1", "state that is compressed"),
    ],
)
def test_a_foreign_header_is_refused(at, value, message):
    store = MemoryFiles()
    file = write_state(store, "shared/a", b"state", 0)
    whole = store.read("shared/a")
    store.replace("shared/a", whole[:at] + value + whole[at + len(value) :])
    with pytest.raises(CorruptFileError, match=message):
        read_state(store, file)


def test_an_undamaged_file_of_another_payload_is_refused():
    store = MemoryFiles()
    file = write_state(store, "shared/a", b"state", 0)
    for other in (b"stat", b"stats"):
        store.delete("shared/a")
        write_state(store, "shared/a", other, 0)
        with pytest.raises(CorruptFileError, match="shared/a"):
            read_state(store, file)


def packed(data: bytes, raw_size: int) -> StateFile:
    return StateFile(size=len(data), crc32=zlib.crc32(data), inline=data, raw_size=raw_size)


def test_a_promise_is_believed_up_to_what_deflate_can_pack():
    data = zlib.compress(b"")
    most = MOST_INFLATED * (len(data) + 1)
    with pytest.raises(CorruptFileError, match="other bytes when unpacked"):
        read_state(MemoryFiles(), packed(data, most))
    with pytest.raises(CorruptFileError, match="cannot contain that much"):
        read_state(MemoryFiles(), packed(data, most + 1))


def test_compressed_bytes_that_break_off_or_are_followed_by_others_are_refused():
    data = zlib.compress(b"state" * 50, 1)
    assert read_state(MemoryFiles(), packed(data, 250)) == b"state" * 50
    for changed in (data[:-1], data + b"x"):
        with pytest.raises(CorruptFileError, match="other bytes when unpacked"):
            read_state(MemoryFiles(), packed(changed, 250))
