"""The file sink writes each record of the surviving history exactly once, whatever fails in between."""

import errno
import fcntl
import functools
import os
import pickle
import re
import tempfile
from pathlib import Path

import cloudpickle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.clock import ManualClock
from ekorn.common import Row
from ekorn.common.serialization import Encoder
from ekorn.common.typeinfo import Types
from ekorn.connectors.files import part_files
from ekorn.datastream.connectors.file_system import (
    BucketAssigner,
    CheckpointRollingPolicy,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    OutputFileConfig,
    RollingPolicy,
    StreamingFileSink,
)
from ekorn.datastream.formats.csv import CsvBulkWriters, CsvSchema
from ekorn.errors import CheckpointError, InvalidProgramError, PendingFileLost, RestoreError, may_be_retried
from ekorn.functions.sink_contract import WriterContext
from ekorn.testing.kits import SinkJob
from tests.connectors.file_sinks import BY_SIZE, EACH_CHECKPOINT, ByFirstLetter, sink_to
from tests.connectors.writing import hidden_files, visible_files, visible_lines
from tests.examples_by_profile import examples

# ------------------------------------------------------------------------------------------------------- exactly once

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 3), st.sampled_from("abc"), st.integers(1, 6)),
        st.tuples(st.just("wait"), st.sampled_from([500, 1500, 4000])),
        st.just(("checkpoint",)),
        st.just(("begin",)),  # completed, or not, after more records were written
        st.tuples(st.just("complete"), st.sampled_from([None, 0, 1])),
        st.just(("abort",)),
        st.tuples(st.just("crash"), st.integers(1, 4), st.booleans(), st.sampled_from([None, 0, 1, 2])),
    ),
    min_size=6,
    max_size=40,
)


@settings(max_examples=examples(500), deadline=None)
@given(steps=STEPS, policy=st.sampled_from([EACH_CHECKPOINT, BY_SIZE]), buffer_bytes=st.sampled_from([1, 12, 1000]))
def test_records_are_visible_exactly_once_through_crashes_aborts_and_rescaling(steps, policy, buffer_bytes):
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(os, "fsync", lambda descriptor: None)
        patch.setattr(part_files, "_BUFFER_BYTES", buffer_bytes)
        base, clock = Path(folder), ManualClock()
        job = SinkJob(sink_to(base, policy, clock, ByFirstLetter()), 2)
        number, crashed, unheard = 0, False, False
        for step in steps:
            match step:
                case ("write", subtask, letter, count):
                    for _ in range(count):
                        job.write(subtask, f"{letter}{number}")
                        number += 1
                case ("wait", millis):
                    clock.advance(millis)
                case ("begin",):
                    job.begin_checkpoint()
                case ("complete", notified):
                    if job.begun:
                        job.complete_checkpoint(notified=notified)
                        unheard = notified is not None
                case ("checkpoint",):
                    job.checkpoint()
                    unheard = False
                case ("abort",):
                    job.abort_checkpoint()
                case ("crash", parallelism, orderly, dies_after):
                    job.crash(parallelism, orderly=orderly, dies_after=dies_after)
                    crashed, unheard = True, False
            covered = job.latest.covered if job.latest else []
            seen = visible_lines(base)
            assert len(seen) == len(set(seen))
            assert set(seen) <= set(covered)
            if policy is EACH_CHECKPOINT and not unheard:
                assert sorted(seen) == sorted(covered)
        job.finish()
        assert sorted(visible_lines(base)) == sorted(job.written)
        if not crashed:
            assert hidden_files(base) == []


def test_without_checkpoints_files_are_finished_at_the_end_of_input(tmp_path):
    sink = sink_to(tmp_path)
    job = SinkJob(sink, 1)
    job.write(0, "a")
    assert visible_files(tmp_path) == []
    writer = job.subtasks[0].writer
    writer.finish()
    sink.create_committer().commit(list(writer.prepare_commit()))
    writer.close()
    assert visible_lines(tmp_path) == ["a"]
    assert hidden_files(tmp_path) == []


def test_nothing_is_visible_before_the_checkpoint_is_complete(tmp_path):
    job = SinkJob(sink_to(tmp_path, EACH_CHECKPOINT), 1)
    job.write(0, "a")
    job.begin_checkpoint()
    assert visible_files(tmp_path) == []
    job.complete_checkpoint()
    assert visible_lines(tmp_path) == ["a"]


def test_no_records_no_files(tmp_path):
    job = SinkJob(sink_to(tmp_path / "out", EACH_CHECKPOINT), 2)
    job.checkpoint()
    job.finish()
    assert not (tmp_path / "out").exists()


def test_committing_again_does_nothing(tmp_path):
    job = SinkJob(sink_to(tmp_path, EACH_CHECKPOINT), 1)
    job.write(0, "a")
    job.begin_checkpoint()
    committables = [c for _, c in job.subtasks[0].waiting]
    for _ in range(3):
        job.subtasks[0].committer.commit(pickle.loads(pickle.dumps(committables)))  # type: ignore[union-attr]
    assert visible_lines(tmp_path) == ["a"]


def test_what_a_failed_attempt_wrote_behind_the_checkpoint_is_cut_off(tmp_path):
    job = SinkJob(sink_to(tmp_path), 1)
    job.write(0, "kept")
    job.checkpoint()
    job.write(0, "lost" * 20_000)  # more than the buffer holds
    job.crash(1)
    job.write(0, "new")
    job.finish()
    assert sorted(visible_lines(tmp_path)) == ["kept", "new"]
    assert hidden_files(tmp_path) == []


def test_a_checkpoint_can_be_restored_twice(tmp_path):
    job = SinkJob(sink_to(tmp_path), 1)
    job.write(0, "kept")
    job.checkpoint()
    for attempt in range(3):
        job.crash(1)
        job.write(0, f"of attempt {attempt}")
    job.finish()
    assert sorted(visible_lines(tmp_path)) == ["kept", "of attempt 2"]


def test_an_orderly_close_removes_what_no_checkpoint_knows_of(tmp_path):
    job = SinkJob(sink_to(tmp_path), 1)
    job.write(0, "known")
    job.checkpoint()
    known = hidden_files(tmp_path)
    job.crash(1)
    job.write(0, "unknown" * 10_000)  # more than the buffer holds
    assert len(hidden_files(tmp_path)) == 2
    job.subtasks[0].writer.close()
    assert hidden_files(tmp_path) == known


def test_an_orderly_close_keeps_what_a_checkpoint_counts_on(tmp_path):
    job = SinkJob(sink_to(tmp_path), 1)
    job.write(0, "open at the checkpoint")
    job.checkpoint()
    job.write(0, "written after it")
    job.crash(1, orderly=True)
    job.finish()
    assert visible_lines(tmp_path) == ["open at the checkpoint"]


# ----------------------------------------------------------------------------------------------------------- failures


def pending_job(base):
    job = SinkJob(sink_to(base, EACH_CHECKPOINT), 1)
    job.write(0, "abc")
    job.begin_checkpoint()
    return job


def test_a_pending_file_that_is_gone_is_an_error_that_names_it(tmp_path):
    job = pending_job(tmp_path)
    (hidden,) = hidden_files(tmp_path)
    hidden.unlink()
    with pytest.raises(PendingFileLost) as raised:
        job.complete_checkpoint()
    visible = raised.value.visible
    assert Path(visible).parent == tmp_path
    assert str(raised.value) == (
        f"cannot commit {visible!r}: the pending file {str(hidden)!r} is gone, and 4 bytes were written to it for a "
        "completed checkpoint. The job is not restarted, and its checkpoints are kept. Put the file back, from a copy "
        "or with the disk that it was on; or, if it was committed and its visible file was moved away since, create an "
        "empty file of the visible name. Then start the program again with ekorn run --resume"
    )
    assert not may_be_retried(raised.value)


def test_a_pending_file_that_lost_bytes_is_an_error_that_names_it(tmp_path):
    job = pending_job(tmp_path)
    (hidden,) = hidden_files(tmp_path)
    os.truncate(hidden, 2)
    with pytest.raises(PendingFileLost, match="has 2 bytes, and 4 bytes were written"):
        job.complete_checkpoint()
    assert visible_files(tmp_path) == []


def test_a_foreign_file_of_the_same_name_is_not_overwritten(tmp_path):
    job = pending_job(tmp_path)
    visible = Path(job.subtasks[0].waiting[0][1]["visible"])
    visible.write_text("mine")
    with pytest.raises(CheckpointError, match="a file of that name exists"):
        job.complete_checkpoint()
    assert visible.read_text() == "mine"


def test_restoring_an_old_checkpoint_whose_file_is_visible_by_now_is_refused(tmp_path):
    job = SinkJob(sink_to(tmp_path, BY_SIZE), 1)
    job.write(0, "a")
    job.checkpoint()
    old = job.latest
    job.write(0, "b" * 30)
    job.checkpoint()
    assert visible_lines(tmp_path) == ["a", "b" * 30]
    job.latest = old
    with pytest.raises(RestoreError, match=r"inprogress.*restore the latest one"):
        job.crash(1)


def test_a_file_that_someone_removed_or_wrote_to_fails_the_writer(tmp_path):
    wrote = "inprogress.* it has 7 bytes, but this writer wrote 2; only one job"
    for spoil, error, says in (
        (Path.unlink, FileNotFoundError, "inprogress"),
        (lambda p: p.write_bytes(b"foreign"), CheckpointError, wrote),
    ):
        job = SinkJob(sink_to(tmp_path), 1)
        job.write(0, "a")
        job.begin_checkpoint()
        job.write(0, "b")
        spoil(hidden_files(tmp_path)[0])
        with pytest.raises(error, match=says):
            job.begin_checkpoint()


def test_a_part_is_readable_by_whom_the_process_allows(tmp_path):
    before = os.umask(0o000)
    try:
        pending_job(tmp_path)
    finally:
        os.umask(before)
    (hidden,) = hidden_files(tmp_path)
    assert hidden.stat().st_mode & 0o777 == 0o666


def test_small_records_are_written_together_and_an_ended_part_is_not_kept_in_memory(tmp_path):
    job = SinkJob(sink_to(tmp_path, BY_SIZE), 1)
    job.write(0, "x" * 20)
    assert hidden_files(tmp_path) == []
    job.write(0, "b")  # ends the part before it
    assert [path.read_text() for path in hidden_files(tmp_path)] == ["x" * 20 + "\n"]


def test_with_at_least_once_a_part_that_is_visible_before_its_checkpoint_stays_as_it_is(tmp_path):
    sink = sink_to(tmp_path, BY_SIZE)
    job = SinkJob(sink, 1)
    job.write(0, "a")
    job.checkpoint()
    assert job.latest is not None
    (state,) = pickle.loads(job.latest.subtasks[0])[1]
    context = WriterContext(0, 1, 0, "j", "o", exactly_once=False)
    continued = sink.create_writer(context, [state])
    assert list(continued.prepare_commit()) == [state], "it is not visible yet"
    sink.create_committer().commit([state])
    assert list(sink.create_writer(context, [state]).prepare_commit()) == []
    assert visible_lines(tmp_path) == ["a"]


@pytest.mark.parametrize("bucket", ["/abs", "../up", "a/../b", None, 3, "a\0b"])
def test_buckets_outside_the_base_path_are_refused(tmp_path, bucket):
    class Fixed(BucketAssigner):
        def get_bucket_id(self, element, context):
            return bucket

    job = SinkJob(sink_to(tmp_path / "out", assigner=Fixed()), 1)
    with pytest.raises(InvalidProgramError, match="bucket assigner"):
        job.write(0, "a")


# ---------------------------------------------------------------------------------------------- names, rolling, types


def test_names_of_part_files(tmp_path):
    config = OutputFileConfig.builder().with_part_prefix("out").with_part_suffix(".txt").build()
    assert (config.get_part_prefix(), config.get_part_suffix()) == ("out", ".txt")
    job = SinkJob(sink_to(tmp_path, EACH_CHECKPOINT, config=config, assigner=ByFirstLetter()), 2)
    for value in ("a1", "b1"):
        job.write(1, value)
    uuid = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    job.begin_checkpoint()
    hidden = [str(p.relative_to(tmp_path)) for p in hidden_files(tmp_path)]
    for number, name in enumerate(hidden):
        assert re.fullmatch(rf"[ab]/\.out-1-{uuid}-{number}\.txt\.inprogress\.{uuid}", name)
    job.complete_checkpoint()
    visible = [str(p.relative_to(tmp_path)) for p in visible_files(tmp_path)]
    for number, name in enumerate(visible):
        assert re.fullmatch(rf"[ab]/out-1-{uuid}-{number}\.txt", name)


def test_part_files_end_by_size_age_and_inactivity(tmp_path):
    clock = ManualClock()
    job = SinkJob(sink_to(tmp_path, BY_SIZE, clock), 1)

    def parts():
        return [path.read_text().split() for path in sorted(visible_files(tmp_path), key=lambda p: p.name)]

    job.write(0, "x" * 20)  # one byte too large with its newline, but only the next record ends the file
    job.write(0, "b")
    job.checkpoint()
    assert parts() == [["x" * 20]]
    clock.advance(2999)
    job.checkpoint()
    assert len(parts()) == 1
    job.write(0, "c")
    clock.advance(2001)
    job.checkpoint()
    assert parts()[1:] == [["b", "c"]], "it is five seconds old"
    job.write(0, "d")
    clock.advance(3000)
    job.write(0, "e")
    job.checkpoint()
    assert parts()[2:] == [["d"]], "it had no record for three seconds"
    clock.advance(2999)
    job.write(0, "f")
    clock.advance(1)
    job.checkpoint()
    assert parts()[3:] == [], "it had a record a moment ago"


class Ages(CheckpointRollingPolicy):
    """Ends parts at checkpoints alone; notes when it is asked about the age of one."""

    def __init__(self):
        self.asked_ms = []

    def should_roll_on_event(self, part_file_state, element):
        return False

    def should_roll_on_processing_time(self, part_file_state, current_time):
        self.asked_ms.append(current_time)
        return False


LINES = functools.partial(FileSink.for_row_format, encoder=Encoder.simple_string_encoder())
BULK = functools.partial(
    FileSink.for_bulk_format,
    writer_factory=CsvBulkWriters.for_schema(CsvSchema.builder().add_string_column("text").build()),
)


@pytest.mark.parametrize(("begin", "record"), [(LINES, "a"), (BULK, Row(text="a"))], ids=["lines", "bulk"])
@pytest.mark.parametrize("interval_ms", [1_000, None])
def test_the_age_of_parts_is_checked_once_an_interval_and_at_checkpoints(tmp_path, begin, record, interval_ms):
    clock, policy = ManualClock(5_000), Ages()
    builder = begin(tmp_path).with_rolling_policy(policy).with_clock(clock)
    if interval_ms is not None:
        builder.with_bucket_check_interval(interval_ms)
    interval_ms = interval_ms or 60_000  # Flink's default
    job = SinkJob(builder.build(), 1)
    clock.advance(1)
    job.write(0, record)
    for step_ms in (interval_ms - 2, 1, 1, interval_ms - 2, 1, 1):
        clock.advance(step_ms)
        job.write(0, record)
    expected = [5_000 + interval_ms, 5_000 + 2 * interval_ms]
    assert policy.asked_ms == expected
    clock.advance(499)
    job.checkpoint()
    expected.append(clock.now_ms())
    job.write(0, record)
    clock.advance(interval_ms - 1)
    job.write(0, record)
    assert policy.asked_ms == expected
    clock.advance(1)
    job.write(0, record)
    assert policy.asked_ms == [*expected, clock.now_ms()]


@pytest.mark.parametrize("value", [0, -1, 1.5, True])
def test_rolling_thresholds_must_be_positive(value):
    with pytest.raises(ValueError, match="part_size is"):
        RollingPolicy.default_rolling_policy(part_size=value)


def test_declared_types_decide_about_the_text(tmp_path):
    sink = sink_to(tmp_path, EACH_CHECKPOINT)
    job = SinkJob(sink.with_input_type(Types.TUPLE([Types.INT(), Types.STRING()])), 1)
    job.write(0, (1, "a"))
    job.finish()
    job = SinkJob(sink, 1)
    job.write(0, (1, "a"))
    job.finish()
    assert sorted(visible_lines(tmp_path)) == ["(1, 'a')", "(1,a)"]


def test_a_declared_type_does_not_change_an_encoder_of_the_program(tmp_path):
    class Json(Encoder):
        def encode(self, value):
            return b"{}\n"

    sink = FileSink.for_row_format(tmp_path, Json()).build().with_input_type(Types.STRING())
    job = SinkJob(cloudpickle.loads(cloudpickle.dumps(sink)), 1)
    job.write(0, "a")
    job.finish()
    (path,) = visible_files(tmp_path)
    assert path.read_text() == "{}\n"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d--\d\d", path.parent.name)


def test_paths_that_are_neither_paths_nor_urls_are_refused():
    with pytest.raises(ValueError, match="'hdfs' file systems are not supported"):
        FileSink.for_row_format("hdfs:/out", Encoder.simple_string_encoder())
    with pytest.raises(ValueError, match="the path is empty"):
        FileSink.for_row_format("", Encoder.simple_string_encoder())


def test_wrong_parts_are_refused_where_they_are_given(tmp_path):
    builder = FileSink.for_row_format(tmp_path, Encoder.simple_string_encoder())
    with pytest.raises(TypeError, match="Encoder"):
        FileSink.for_row_format(tmp_path, str)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="with_bucket_assigner"):
        builder.with_bucket_assigner("yyyy")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="with_rolling_policy"):
        builder.with_rolling_policy(60)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="with_output_file_config"):
        builder.with_output_file_config("part")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="enable_compact"):
        builder.enable_compact("often", FileCompactor.concat_file_compactor())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="enable_compact"):
        builder.enable_compact(FileCompactStrategy.builder().set_size_threshold(1).build(), "concat")  # type: ignore[arg-type]


@pytest.mark.parametrize("interval", [0, -1, 1.5, True, "1"])
def test_the_interval_between_checks_is_whole_milliseconds_above_0(tmp_path, interval):
    builder = FileSink.for_row_format(tmp_path, Encoder.simple_string_encoder())
    assert builder.with_bucket_check_interval(1) is builder
    with pytest.raises(ValueError, match=f"takes milliseconds above 0, got {interval!r}"):
        builder.with_bucket_check_interval(interval)


@pytest.mark.parametrize("wrong", ["a/b", "a\0b", "/", None, 7, b"part"])
def test_the_names_of_parts_cannot_lead_elsewhere(wrong):
    with pytest.raises(ValueError, match=f"a part file's prefix is text without '/', got {re.escape(repr(wrong))}"):
        OutputFileConfig(part_prefix=wrong)
    with pytest.raises(ValueError, match=f"a part file's suffix is text without '/', got {re.escape(repr(wrong))}"):
        OutputFileConfig(part_suffix=wrong)


@pytest.mark.parametrize("build", [OutputFileConfig, OutputFileConfig.builder().build])
def test_parts_are_named_part_unless_told_otherwise(build):
    assert (build().get_part_prefix(), build().get_part_suffix()) == ("part", "")


# ------------------------------------------------------------------------------------------------- the older spelling


class Subtask0:
    def get_index_of_this_subtask(self):
        return 0


class NoTimestamp:
    def timestamp(self):
        return None


def streaming_sink(base):
    with pytest.warns(DeprecationWarning, match="FileSink"):
        builder = StreamingFileSink.for_row_format(str(base), Encoder.simple_string_encoder())
        sink = builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
    sink = cloudpickle.loads(cloudpickle.dumps(sink))
    sink.open(Subtask0())
    return sink


def test_the_older_sink_commits_its_transactions_once(tmp_path):
    sink = streaming_sink(tmp_path)
    first = sink.begin_transaction()
    sink.invoke(first, "a", NoTimestamp())
    sink.pre_commit(first)
    second = sink.begin_transaction()
    sink.invoke(second, "lost", NoTimestamp())
    first, second = pickle.loads(pickle.dumps((first, second)))
    assert visible_files(tmp_path) == []
    sink.close()
    restored = streaming_sink(tmp_path)
    for _ in range(2):
        restored.recover_and_commit(first)
    restored.recover_and_abort(second)
    assert visible_lines(tmp_path) == ["a"]
    assert hidden_files(tmp_path) == []


def test_closing_the_older_sink_removes_what_no_transaction_holds(tmp_path):
    sink = streaming_sink(tmp_path)
    sink.invoke(sink.begin_transaction(), "x" * (8 << 20), NoTimestamp())  # more than is kept in memory
    assert len(hidden_files(tmp_path)) == 1
    sink.close()
    assert hidden_files(tmp_path) == visible_files(tmp_path) == []


def test_the_warning_about_the_older_sink_names_the_line_that_builds_it(tmp_path):
    with pytest.warns(DeprecationWarning, match="FileSink") as warned:
        StreamingFileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder()).build()
    assert [warning.filename for warning in warned] == [__file__]


def test_an_older_sink_that_was_never_opened_can_be_closed(tmp_path):
    with pytest.warns(DeprecationWarning, match="FileSink"):
        StreamingFileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder()).build().close()


def test_a_part_that_nobody_appends_to_is_renamed_and_not_copied(tmp_path):
    job = SinkJob(sink_to(tmp_path, EACH_CHECKPOINT), 1)
    job.write(0, "a")
    job.begin_checkpoint()
    (written,) = [path.stat().st_ino for path in tmp_path.rglob(".part-*")]
    job.complete_checkpoint()
    (committed,) = [path.stat().st_ino for path in tmp_path.rglob("part-*")]
    assert committed == written


# ------------------------------------------------------------------------- attempts that do not know they are over


def part_in_progress(tmp_path):
    """Create a part whose first bytes a checkpoint refers to, and the writer of an abandoned attempt that continues."""
    part = part_files.PartFile("", str(tmp_path / ".part-0.inprogress"), str(tmp_path / "part-0"), 0)
    part.write(b"counts\n", 0)
    part.make_durable()
    return part, part.pending()


def test_what_an_abandoned_attempt_appends_before_the_commit_is_cut_off(tmp_path):
    part, pending = part_in_progress(tmp_path)
    part.write(b"does not\n", 0)
    part.flush()
    part_files.publish([pending])
    assert (tmp_path / "part-0").read_bytes() == b"counts\n"


def test_an_abandoned_attempt_cannot_append_after_the_commit(tmp_path):
    part, pending = part_in_progress(tmp_path)
    part_files.publish([pending])
    part.write(b"does not\n", 0)
    with pytest.raises((CheckpointError, FileNotFoundError)):
        part.flush()
    assert (tmp_path / "part-0").read_bytes() == b"counts\n"


def test_an_abandoned_attempt_that_holds_the_file_open_does_not_change_the_output(tmp_path):
    _, pending = part_in_progress(tmp_path)
    asleep = os.open(pending["hidden"], os.O_WRONLY | os.O_APPEND)  # as `flush` does before the process is suspended
    part_files.hold(asleep)
    part_files.publish([pending])
    os.write(asleep, b"does not\n")
    os.close(asleep)
    assert (tmp_path / "part-0").read_bytes() == b"counts\n"
    assert [p.name for p in tmp_path.iterdir()] == ["part-0"]


def test_a_part_of_more_than_a_block_is_copied_whole(tmp_path):
    part, _ = part_in_progress(tmp_path)
    part.write(b"x" * (3 << 20), 0)
    part.make_durable()
    part.write(b"does not\n", 0)
    part.flush()
    pending = part.pending() | {"bytes": (3 << 20) + 7}
    asleep = os.open(pending["hidden"], os.O_WRONLY | os.O_APPEND)
    part_files.hold(asleep)
    part_files.publish([pending])
    os.close(asleep)
    assert (tmp_path / "part-0").read_bytes() == b"counts\n" + b"x" * (3 << 20)


def without_locks(descriptor, operation):
    raise OSError(errno.ENOLCK, "No locks available")


def test_a_file_system_without_locks_is_written_to_by_size_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", without_locks)
    part, pending = part_in_progress(tmp_path)
    part.write(b"does not\n", 0)
    part.flush()
    part_files.publish([pending])
    assert (tmp_path / "part-0").read_bytes() == b"counts\n"
    assert [p.name for p in tmp_path.iterdir()] == ["part-0"]


@pytest.mark.parametrize("there", [b"counts\nmore", b"count", b"differs"])
def test_another_file_in_the_place_of_a_part_is_left_alone(tmp_path, there):
    _, pending = part_in_progress(tmp_path)
    (tmp_path / "part-0").write_bytes(there)
    with pytest.raises(CheckpointError, match="a file of that name exists; move it away"):
        part_files.publish([pending])
    assert (tmp_path / "part-0").read_bytes() == there
    assert Path(pending["hidden"]).read_bytes() == b"counts\n"


def test_a_commit_that_died_between_the_copy_and_the_removal_of_the_original_is_finished(tmp_path, monkeypatch):
    _, pending = part_in_progress(tmp_path)
    asleep = os.open(pending["hidden"], os.O_WRONLY | os.O_APPEND)
    part_files.hold(asleep)
    with monkeypatch.context() as patched:
        patched.setattr(part_files, "remove_quietly", lambda path: None)  # the process dies before the removal
        part_files.publish([pending])
    os.write(asleep, b"does not\n")
    os.close(asleep)
    part_files.publish([pending])
    assert (tmp_path / "part-0").read_bytes() == b"counts\n"
    assert [p.name for p in tmp_path.iterdir()] == ["part-0"]


def test_an_abandoned_attempt_that_opened_the_file_just_before_the_commit_fails(tmp_path, monkeypatch):
    part, pending = part_in_progress(tmp_path)
    hold = part_files.hold

    def asleep_before_holding(descriptor):
        part_files.publish([pending])
        hold(descriptor)

    monkeypatch.setattr(part_files, "hold", asleep_before_holding)
    part.write(b"does not\n", 0)
    with pytest.raises(CheckpointError, match="another attempt has committed it"):
        part.flush()
    assert (tmp_path / "part-0").read_bytes() == b"counts\n"
