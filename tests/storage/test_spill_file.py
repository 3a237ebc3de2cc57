"""Bytes on local disk in a file without a name: what is appended reads back, and nothing is left behind."""

import errno
import resource
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from ekorn.storage.spill_file import SpillFile
from tests.live_jobs import open_files

some_bytes = st.binary(max_size=60) | st.integers(60, 300).map(lambda size: bytes(range(256))[:size] * 2)
buffers = st.sampled_from([0, 1, 7, 64, 1 << 15])


class SpillFileMachine(RuleBasedStateMachine):
    """Appends and reads in any order, beside a dictionary of what was appended where."""

    appended = Bundle("appended")

    @initialize(buffer_bytes=buffers)
    def start(self, buffer_bytes):
        self.file = SpillFile(buffer_bytes=buffer_bytes)
        self.expected = b""

    def teardown(self):
        self.file.close()

    @rule(target=appended, parts=st.lists(some_bytes, max_size=3), kind=st.sampled_from([bytes, bytearray, memoryview]))
    def append(self, parts, kind):
        offset = self.file.append(*map(kind, parts))
        assert offset == len(self.expected)
        self.expected += b"".join(parts)
        return offset, len(self.expected) - offset

    @rule(what=appended)
    def read(self, what):
        offset, size_bytes = what
        assert self.file.read(offset, size_bytes) == self.expected[offset : offset + size_bytes]

    @invariant()
    def the_size_is_that_of_what_was_appended(self):
        assert self.file.size_bytes == len(self.expected)


TestSpillFile = SpillFileMachine.TestCase


@given(st.lists(st.lists(some_bytes)), buffers, st.randoms(use_true_random=False))
def test_cursors_read_the_chunks_between_their_bounds_each_at_its_own_pace(runs, buffer_bytes, random):
    file = SpillFile(buffer_bytes=buffer_bytes)
    bounds = [0]
    for run in runs:
        for data in run:
            file.append_chunk(data)
        bounds.append(file.size_bytes)
    cursors: dict[int, Iterator[bytes]] = {n: file.chunks(bounds[n], bounds[n + 1]) for n in range(len(runs))}
    found: list[list[bytes]] = [[] for _ in runs]
    while cursors:
        number = random.choice(list(cursors))
        data = next(cursors[number], None)
        if data is None:
            del cursors[number]
        else:
            found[number].append(data)
    assert found == runs
    assert list(file.chunks()) == [data for run in runs for data in run]


def test_chunks_may_be_appended_while_others_are_read():
    file = SpillFile(buffer_bytes=100)
    file.append_chunk(b"first")
    reading = file.chunks()
    assert next(reading) == b"first"
    file.append_chunk(b"second")
    assert list(reading) == []
    assert list(file.chunks()) == [b"first", b"second"]


def test_a_buffer_gathers_small_parts_and_lets_large_ones_through(tmp_path):
    file = SpillFile(str(tmp_path), buffer_bytes=100)
    offsets = [file.append(b"x" * size) for size in (40, 60, 1, 500, 99)]
    assert offsets == [0, 40, 100, 101, 601]
    assert [file.read(0, 100), file.read(100, 600)] == [b"x" * 100, b"x" * 600]


def test_the_file_has_no_name_and_is_closed_with_the_last_reference(tmp_path):
    file = SpillFile(str(tmp_path))
    file.append_chunk(b"x" * 1_000)
    reading = file.chunks()
    assert len(open_files(tmp_path)) == 1
    assert list(tmp_path.iterdir()) == [], "a killed process leaves nothing either"
    next(reading)
    del file
    assert len(open_files(tmp_path)) == 1, "a reader refers to the file"
    del reading
    assert open_files(tmp_path) == set()


def test_a_closed_file_gives_its_space_back_and_is_not_read_by_mistake(tmp_path):
    file = SpillFile(str(tmp_path))
    file.append(b"x")
    file.close()
    file.close()
    assert open_files(tmp_path) == set()
    with open(tmp_path / "other", "w+b"), pytest.raises(OSError, match="Bad file descriptor"):
        file.read(0, 1)  # the other file may have the number that this one had


def test_other_threads_read_while_one_appends():
    file = SpillFile()
    with ThreadPoolExecutor(4) as threads:
        messages = [bytes([n % 256]) * (n * 37 % 5_000) for n in range(500)]
        reads = [threads.submit(file.read, file.append(message), len(message)) for message in messages]
        assert [each.result() for each in reads] == messages


@contextmanager
def room_for(size_bytes: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("buffer_bytes", [0, 100])
def test_a_failed_append_names_the_folder_and_leaves_what_was_appended_before(buffer_bytes, tmp_path):
    file = SpillFile(str(tmp_path), buffer_bytes=buffer_bytes)
    file.append_chunk(b"a" * 80)
    with room_for(1_000), pytest.raises(OSError, match=str(tmp_path)) as found:
        file.append_chunk(b"b" * 2_000)
    assert found.value.errno == errno.EFBIG
    file.append_chunk(b"c" * 200)
    assert list(file.chunks()) == [b"a" * 80, b"c" * 200]


def test_a_buffer_that_could_not_be_written_is_written_later(tmp_path):
    file = SpillFile(str(tmp_path), buffer_bytes=100)
    file.append(b"a" * 90)
    with room_for(50), pytest.raises(OSError, match=str(tmp_path)):
        file.append(b"b" * 90)
    file.append(b"c" * 90)
    assert file.read(0, 180) == b"a" * 90 + b"c" * 90


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing"):
        SpillFile(str(tmp_path / "missing"))
