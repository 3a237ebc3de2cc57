"""State files: what is checked of a file without reading it, and bytes that are not what they should be."""

import pytest

from tamias.errors import CorruptFileError, StateError, StateMigrationError
from tamias.state.evolution.pickled_classes import loads
from tamias.state.rocksdb.value_bytes import split_original, with_original, without_original
from tamias.state.state_files import check_state, write_state
from tamias.storage.memory import MemoryFiles
from tamias.types.by_value import dumps


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
    with pytest.raises(CorruptFileError, match=r"the place.*no pickle"):
        loads(data, "the place")


def test_a_key_whose_class_is_gone_is_refused_with_what_to_do():
    with pytest.raises(StateMigrationError, match=r"the place: the class of a key is gone.*restore the class"):
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
