"""Files that the sink wrote survive a loss of power with all that a completed checkpoint covers."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.clock import ManualClock
from ekorn.common.serialization import Encoder
from ekorn.connectors.files import part_files
from ekorn.datastream.connectors.file_system import BucketAssigner, FileSink
from ekorn.testing.kits import SinkJob
from tests.connectors.file_sinks import BY_SIZE, EACH_CHECKPOINT, ByFirstLetter, sink_to
from tests.connectors.writing import hidden_files, visible_lines
from tests.examples_by_profile import examples
from tests.storage.power_loss import Disk

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 1), st.sampled_from("abc"), st.integers(1, 6)),
        st.just(("checkpoint",)),
        st.just(("begin",)),
        st.tuples(st.just("complete"), st.sampled_from([None, 0, 1])),
        st.tuples(st.just("power"), st.integers(1, 3), st.sampled_from(["synced", "present"])),
    ),
    min_size=3,
    max_size=25,
)


@pytest.fixture
def disk(tmp_path, monkeypatch):
    disk = Disk(tmp_path, monkeypatch)
    yield disk
    disk.close()


@settings(max_examples=examples(150), deadline=None)
@given(steps=STEPS, policy=st.sampled_from([EACH_CHECKPOINT, BY_SIZE]), buffer_bytes=st.sampled_from([1, 12, 1000]))
def test_records_are_visible_exactly_once_through_losses_of_power(steps, policy, buffer_bytes):
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(part_files, "_BUFFER_BYTES", buffer_bytes)
        disk = Disk(Path(folder), patch)
        base, number = disk.root / "new" / "out", 0
        job = SinkJob(sink_to(base, policy, ManualClock(), ByFirstLetter()), 2)
        for step in [*steps, ("checkpoint",), ("power", 1, "synced")]:
            match step:
                case ("write", subtask, letter, count):
                    for _ in range(count):
                        job.write(subtask, f"{letter}{number}")
                        number += 1
                case ("checkpoint",):
                    job.checkpoint()
                case ("begin",):
                    job.begin_checkpoint()
                case ("complete", notified):
                    job.complete_checkpoint(notified=notified)
                case ("power", parallelism, names):
                    disk.fail(names=names)
                    job.crash(parallelism)
        job.finish()
        assert sorted(visible_lines(base)) == sorted(job.written)
        disk.fail()
        assert sorted(visible_lines(base)) == sorted(job.written)
        disk.close()


def test_what_is_committed_is_visible_after_a_loss_of_power(disk):
    job = SinkJob(sink_to(disk.root / "out", EACH_CHECKPOINT), 1)
    job.write(0, "a")
    job.checkpoint()
    disk.fail()
    assert visible_lines(disk.root) == ["a"]


class Nothing(Encoder):
    """Writes no bytes for a record."""

    def encode(self, value):
        return b""


def test_a_part_without_bytes_that_a_checkpoint_refers_to_survives(disk):
    builder = FileSink.for_row_format(disk.root / "out", Nothing())
    job = SinkJob(builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build(), 1)
    job.write(0, "a")
    job.checkpoint()
    disk.fail()
    job.crash(1)
    job.finish()
    assert visible_lines(disk.root) == []


def test_what_is_durable_is_not_synced_again(disk):
    job = SinkJob(sink_to(disk.root / "out"), 1)
    job.write(0, "a")
    job.begin_checkpoint()
    (hidden,) = hidden_files(disk.root)
    disk.synced.clear()
    job.begin_checkpoint()
    assert disk.synced == []
    job.write(0, "b")
    job.begin_checkpoint()
    assert disk.synced == [hidden], "new bytes, under a name that is durable"


def test_bytes_that_were_cut_off_do_not_come_back(disk):
    job = SinkJob(sink_to(disk.root / "out"), 1)
    job.write(0, "kept")
    job.checkpoint()
    job.write(0, "lost")
    job.begin_checkpoint()  # the bytes of the second checkpoint, which never completes, are synced
    job.crash(1)
    job.checkpoint()
    disk.fail(names="present")
    assert visible_lines(disk.root) == ["kept"]


def test_a_part_that_is_copied_out_survives(disk):
    job = SinkJob(sink_to(disk.root / "out"), 1)
    job.write(0, "kept")
    job.checkpoint()
    (hidden,) = hidden_files(disk.root)
    with open(hidden, "rb") as held:  # as an abandoned attempt does while it appends
        part_files.hold(held.fileno())
        job.crash(1)
        job.checkpoint()
    disk.fail()
    assert visible_lines(disk.root) == ["kept"]
