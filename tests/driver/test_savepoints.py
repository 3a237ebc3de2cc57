"""Savepoints of running jobs: taken, stopped with, restored from, failed; on a scripted engine."""

import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ekorn.checkpoint.restore_point import resolve
from ekorn.common import Encoder, JobStatus, Time, WatermarkStrategy
from ekorn.common.job_id import JobID
from ekorn.datastream import ExternalizedCheckpointRetention, RuntimeExecutionMode
from ekorn.datastream.connectors.file_system import FileSink
from ekorn.datastream.functions import MapFunction
from ekorn.datastream.window import TumblingEventTimeWindows
from ekorn.driver.job_handle import JobHandle
from ekorn.errors import CheckpointError, ConfigurationError, JobExecutionError
from ekorn.functions.source_contract import SourceFunction
from ekorn.functions.state.checkpointed import CheckpointListener, ListCheckpointed
from ekorn.storage.file_store import open_files
from ekorn.testing.local_run import on_local_engine
from ekorn.testing.scripted import Crash, DriverDied, Script, ScriptedSource, run_scripted, start_scripted
from tests.driver.savepoint_programs import COUNT, EXPECTED, Ask, Ledger, counting, environment, numbers

WAIT_S = 60


@pytest.fixture
def places(tmp_path):
    """The directory for checkpoints and the directory for savepoints."""
    return tmp_path / "checkpoints", tmp_path / "savepoints"


# ----------------------------------------------------------------------------------------- taken while the job goes on


def test_a_savepoint_changes_nothing_for_the_job_that_goes_on(places):
    checkpoints, savepoints = places
    ask = Ask(savepoints)
    run = run_scripted(counting(numbers(environment(checkpoints))), Script(deeds={2: ask}))
    assert run.records == EXPECTED
    assert run.handle.progress().savepoints_completed == 1
    assert run.handle.progress().last_savepoint_path == ask.path


def test_a_savepoint_lies_in_a_directory_of_its_own_beside_its_metadata(places):
    checkpoints, savepoints = places
    ask = Ask(savepoints)
    run = run_scripted(counting(numbers(environment(checkpoints, data_inline_threshold=0))), Script(deeds={2: ask}))
    path = Path(ask.path)
    assert path.parent == savepoints and list(savepoints.iterdir()) == [path]
    assert re.fullmatch(rf"savepoint-{str(run.settings.job_id)[:6]}-[0-9a-f]{{12}}", path.name)
    names = {p.name for p in path.iterdir()}
    assert "_metadata" in names and len(names) > 1
    assert resolve(str(path))[1].paths() == names - {"_metadata"}


def test_savepoints_are_numbered_with_checkpoints(places):
    checkpoints, savepoints = places
    ask = Ask(savepoints)
    run = run_scripted(counting(numbers(environment(checkpoints))), Script(deeds={2: ask}))
    number = resolve(ask.path)[1].checkpoint_id
    carried = [order.checkpoint_id for order in run.epochs if order.checkpoint_id is not None]
    assert carried == list(range(1, len(carried) + 1)) and number in carried


def test_a_savepoint_needs_no_checkpoints(tmp_path):
    ask = Ask(tmp_path)
    assert run_scripted(counting(numbers(environment())), Script(deeds={2: ask})).records == EXPECTED
    again = run_scripted(counting(numbers(environment())), restore_path=ask.path)
    assert again.records and again.records == EXPECTED[-len(again.records) :]


def test_the_default_directory_is_used_when_none_is_given(places):
    checkpoints, savepoints = places
    env = environment(checkpoints)
    env.set_default_savepoint_directory(str(savepoints))
    ask = Ask()
    run_scripted(counting(numbers(env)), Script(deeds={2: ask}))
    assert Path(ask.path).parent == savepoints


def test_without_a_directory_and_a_default_the_request_is_refused(tmp_path):
    def ask(handle):
        with pytest.raises(ConfigurationError, match="savepoint-dir"):
            handle.request_savepoint()
        asked.append(True)

    asked = []
    run_scripted(counting(numbers(environment(tmp_path))), Script(deeds={2: ask}))
    assert asked == [True]


def test_state_kept_in_the_driver_travels_inside_the_metadata(tmp_path):
    env = environment()
    env.enable_checkpointing(10)
    ask = Ask(tmp_path)
    run_scripted(counting(numbers(env)), Script(deeds={2: ask}))
    assert [p.name for p in Path(ask.path).iterdir()] == ["_metadata"]
    assert run_scripted(counting(numbers(environment())), restore_path=ask.path).records


def test_many_savepoints_may_be_asked_for_at_once(places):
    checkpoints, savepoints = places
    asks = [Ask(savepoints) for _ in range(3)]
    script = Script(deeds={2: lambda handle: [ask(handle) for ask in asks]})
    assert run_scripted(counting(numbers(environment(checkpoints))), script).records == EXPECTED
    assert len({ask.path for ask in asks}) == 3


def test_a_savepoint_asked_for_at_the_very_end_is_taken_or_refused_but_never_forgotten(places):
    checkpoints, savepoints = places
    epochs = len(run_scripted(counting(numbers(environment(checkpoints)))).epochs)
    for epoch in range(epochs - 2, epochs + 1):
        ask = Ask(savepoints)
        run = run_scripted(counting(numbers(environment(checkpoints))), Script(deeds={epoch: ask}))
        assert run.records == EXPECTED
        assert ask.future.done()
        assert ask.error is None or "the job has ended" in ask.error
        assert len(list(savepoints.iterdir())) == len(list(savepoints.glob("*/_metadata")))


# ------------------------------------------------------------------------------------------------------------ restored


def test_a_file_sink_that_refuses_an_older_savepoint_is_not_asked_again_and_again(places, tmp_path):
    """The part file became visible with a later checkpoint, which cannot be undone, as in Flink."""
    checkpoints, savepoints = places
    ask, programs = Ask(savepoints), []
    for _ in range(2):
        env = environment(checkpoints, restarts=5)
        encoder = Encoder.simple_string_encoder()
        numbers(env).sink_to(FileSink.for_row_format(str(tmp_path / "out"), encoder).build()).uid("files")
        programs.append(env)
    run_scripted(programs[0], Script(deeds={2: ask}))
    run = start_scripted(programs[1], restore_path=ask.path)
    with pytest.raises(JobExecutionError, match=r"cannot restore the file sink.*restore the latest one"):
        run.handle.wait(0)
    assert run.handle.progress().restarts == 0


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("epoch", [1, 3, 6])
def test_a_job_goes_on_from_a_savepoint(places, epoch, native):
    checkpoints, savepoints = places
    ask = Ask(savepoints, native=native)
    run_scripted(counting(numbers(environment(checkpoints))), Script(deeds={epoch: ask}))
    again = run_scripted(counting(numbers(environment(checkpoints))), restore_path=ask.path)
    assert again.records == EXPECTED[(epoch + 1) * 3 :]


@pytest.mark.parametrize("name", ["", "/_metadata"])
def test_a_savepoint_that_was_moved_restores(places, tmp_path, name):
    checkpoints, savepoints = places
    ask = Ask(savepoints)
    env = environment(checkpoints, data_inline_threshold=0)
    run_scripted(counting(numbers(env)), Script(deeds={3: ask}))
    moved = tmp_path / "elsewhere" / "kept for good"
    moved.parent.mkdir()
    shutil.move(ask.path, moved)
    shutil.rmtree(savepoints)
    shutil.rmtree(checkpoints)
    assert run_scripted(counting(numbers(environment())), restore_path=f"{moved}{name}").records == EXPECTED[12:]


@pytest.mark.parametrize("before", [1, 2, 3])
@pytest.mark.parametrize("after", [1, 2, 4])
def test_a_savepoint_restores_at_another_parallelism(places, before, after):
    checkpoints, savepoints = places

    def program(parallelism):
        env = environment(checkpoints, parallelism=parallelism)
        return counting(numbers(env, splits=4, runs=(1,)), modulus=5)

    ask = Ask(savepoints, then="stop")
    first = run_scripted(program(before), Script(deeds={2: ask}))
    second = run_scripted(program(after), restore_path=ask.path)
    assert 0 < len(first.records) < COUNT
    assert sorted(first.records + second.records) == [(key, n) for key in range(5) for n in range(1, 5)]


def test_checkpoint_numbers_go_on_after_the_savepoint_in_a_directory_of_the_new_job(places):
    checkpoints, savepoints = places
    ask = Ask(savepoints, then="stop")
    run_scripted(counting(numbers(environment(checkpoints))), Script(deeds={2: ask}))
    number = resolve(ask.path)[1].checkpoint_id
    again = run_scripted(counting(numbers(environment(checkpoints))), restore_path=ask.path)
    assert min(order.checkpoint_id for order in again.epochs if order.checkpoint_id) == number + 1


# ------------------------------------------------------------------------------------------ stopped, drained, cancelled


def windowed(env, fired):
    """Sums over windows that end far after the last record: only the end of event time fires them."""
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value)
    source = ScriptedSource([range(COUNT)], (3,))
    return (
        env.from_source(source, strategy, "numbers")
        .uid("numbers")
        .key_by(lambda n: n % 2)
        .window(TumblingEventTimeWindows.of(Time.seconds(1000)))
        .reduce(lambda a, b: a + b)
        .uid("sums")
        .map(Finishing(fired))
        .uid("finishing")
    )


class Finishing(MapFunction, CheckpointListener):
    """Records the calls of its life cycle."""

    news = {}

    def __init__(self, name):
        self.name = name
        Finishing.news[name] = []

    def map(self, value):
        return value

    def notify_checkpoint_complete(self, checkpoint_id):
        Finishing.news[self.name].append(checkpoint_id)

    def close(self):
        Finishing.news[self.name].append("closed")


def test_stopping_leaves_windows_open_and_the_restored_job_fires_them(places):
    checkpoints, savepoints = places
    ask = Ask(savepoints, then="stop")
    run = run_scripted(windowed(environment(checkpoints), "stop"), Script(deeds={2: ask}))
    assert run.status is JobStatus.FINISHED
    assert run.records == []
    again = run_scripted(windowed(environment(checkpoints), "stop again"), restore_path=ask.path)
    assert sorted(again.records) == [sum(range(0, COUNT, 2)), sum(range(1, COUNT, 2))]


def test_draining_fires_windows_and_the_restored_job_starts_with_closed_ones(places):
    checkpoints, savepoints = places
    ask = Ask(savepoints, then="drain")
    run = run_scripted(windowed(environment(checkpoints), "drain"), Script(deeds={2: ask}))
    assert run.status is JobStatus.FINISHED
    read = 2 * 3
    assert sorted(run.records) == sorted([sum(range(0, read, 2)), sum(range(1, read, 2))])
    again = run_scripted(windowed(environment(checkpoints), "drain again"), restore_path=ask.path)
    assert sorted(again.records) == sorted([sum(range(read, COUNT, 2)), sum(range(read + 1, COUNT, 2))])


@pytest.mark.parametrize("then", ["stop", "drain"])
def test_functions_hear_of_the_savepoint_that_the_job_ends_with_before_they_are_closed(places, then):
    checkpoints, savepoints = places
    ask = Ask(savepoints, then=then)
    run_scripted(windowed(environment(checkpoints), then), Script(deeds={3: ask}))
    assert Finishing.news[then][-2:] == [resolve(ask.path)[1].checkpoint_id, "closed"]


def test_functions_do_not_hear_of_a_savepoint_that_the_job_goes_on_after(places):
    checkpoints, savepoints = places
    ask = Ask(savepoints)
    run_scripted(windowed(environment(checkpoints), "go on"), Script(deeds={3: ask}))
    assert resolve(ask.path)[1].checkpoint_id not in Finishing.news["go on"]


@pytest.mark.parametrize("checkpoints", [True, False])
@pytest.mark.parametrize("then", ["stop", "drain"])
def test_what_a_stopped_job_put_out_and_what_the_next_one_does_is_everything_once(tmp_path, then, checkpoints):
    ledger = Ledger(f"{then} {checkpoints}")

    def program():
        env = environment(tmp_path / "checkpoints" if checkpoints else None)
        counting(numbers(env)).add_sink(ledger).uid("ledger")
        return env

    ask = Ask(tmp_path / "savepoints", then=then)
    run_scripted(program(), Script(checkpoints=[False, True], deeds={3: ask}))
    assert 0 < len(Ledger.committed(ledger.name)) < COUNT
    run_scripted(program(), restore_path=ask.path)
    assert Ledger.committed(ledger.name) == EXPECTED


def test_without_checkpoints_a_transactional_sink_loses_nothing_to_a_savepoint(tmp_path):
    ledger = Ledger("no checkpoints")
    env = environment()
    counting(numbers(env)).add_sink(ledger).uid("ledger")
    run_scripted(env, Script(deeds={2: Ask(tmp_path)}))
    assert Ledger.committed(ledger.name) == EXPECTED


def test_cancelling_with_a_savepoint_ends_as_cancelled_and_restores(places):
    checkpoints, savepoints = places
    ask = Ask(savepoints, then="cancel")
    run = start_scripted(counting(numbers(environment(checkpoints))), Script(deeds={2: ask}))
    assert run.status is JobStatus.CANCELED
    again = run_scripted(counting(numbers(environment(checkpoints))), restore_path=ask.path)
    assert again.records == EXPECTED[9:]


@pytest.mark.parametrize("concurrent", [1, 3])
@pytest.mark.parametrize("epoch", [1, 2, 3, 4])
def test_no_sink_commits_behind_the_savepoint_that_a_job_is_cancelled_with(places, epoch, concurrent):
    checkpoints, savepoints = places
    ledger, ask = Ledger(f"cancelled, {concurrent}"), Ask(savepoints, then="cancel")
    programs = []
    for _ in range(2):
        programs.append(environment(checkpoints, max_concurrent_checkpoints=concurrent))
        counting(numbers(programs[-1])).add_sink(ledger).uid("ledger")
    # The savepoint's snapshots arrive after those of the checkpoints that would follow it.
    late = dict.fromkeys(range(1, 9), 2)
    run = start_scripted(programs[0], Script(deeds={epoch: ask}, late_snapshots=late))
    assert run.status is JobStatus.CANCELED
    run_scripted(programs[1], restore_path=ask.path)
    assert Ledger.committed(ledger.name) == EXPECTED


@pytest.mark.parametrize("late", [0, 2])
@pytest.mark.parametrize("epoch", range(5, 10))
def test_a_job_that_is_to_be_cancelled_at_its_very_end_finishes_or_is_cancelled_but_loses_nothing(places, epoch, late):
    checkpoints, savepoints = places
    ledger, ask = Ledger(f"cancelled at the end, {epoch}, {late}"), Ask(savepoints, then="cancel")
    programs = []
    for _ in range(2):
        programs.append(environment(checkpoints, timeout="300 ms", tolerable_failed_checkpoints=9))
        counting(numbers(programs[-1])).add_sink(ledger).uid("ledger")
    run = start_scripted(programs[0], Script(deeds={epoch: ask}, late_snapshots=dict.fromkeys(range(8, 16), late)))
    assert run.status in {JobStatus.CANCELED, JobStatus.FINISHED}
    if run.status is JobStatus.CANCELED:
        run_scripted(programs[1], restore_path=ask.path)
    assert Ledger.committed(ledger.name) == EXPECTED


@pytest.mark.parametrize("then", ["stop", "drain"])
@pytest.mark.parametrize("late", [2, 999])
def test_a_job_that_is_being_cancelled_with_a_savepoint_is_stopped_if_that_fails(places, late, then):
    checkpoints, savepoints = places
    cancel, stop = Ask(savepoints, then="cancel"), Ask(savepoints, then=then)
    env = environment(checkpoints, timeout="100 ms", tolerable_failed_checkpoints=9)
    slow = dict.fromkeys(range(3, 5), late)
    run = start_scripted(counting(numbers(env)), Script(deeds={2: cancel, 3: stop}, late_snapshots=slow))
    if late == 999:
        assert run.status is JobStatus.FINISHED
        assert "expired" in cancel.error and Path(stop.path, "_metadata").exists()
    else:
        assert run.status is JobStatus.CANCELED
        assert "the job has ended" in stop.error and Path(cancel.path, "_metadata").exists()


class Endless(SourceFunction):
    """Counts without end; its position is what it has collected under the lock."""

    def __init__(self):
        self.running = True
        self.offset = 0

    def run(self, ctx):
        while self.running:
            with ctx.get_checkpoint_lock():
                self.offset += 1
                ctx.collect(self.offset)

    def cancel(self):
        self.running = False

    def snapshot_state(self, checkpoint_id, timestamp):
        return [self.offset]

    def restore_state(self, state):
        self.offset = state[0] if state else 0


class Source(Endless, ListCheckpointed):
    """Stores its position in checkpoints."""


@pytest.mark.parametrize("then", ["stop", "drain"])
def test_a_source_function_stands_where_the_savepoint_says(tmp_path, then):
    ledger = Ledger(f"source function, {then}")

    with on_local_engine():
        env = environment()
        env.add_source(Source()).uid("endless").add_sink(ledger).uid("ledger")
        client = env.execute_async()
        for _ in range(WAIT_S * 100):
            if client.get_progress().records_read > 1000:
                break
            time.sleep(0.01)
        path = client.stop_with_savepoint(then == "drain", str(tmp_path)).result(WAIT_S)
        client.get_job_execution_result().result(WAIT_S)
    out = Ledger.committed(ledger.name)
    assert out == list(range(1, len(out) + 1)) and len(out) > 1000
    ask = Ask(tmp_path, then="stop")
    env = environment()
    env.add_source(Source()).uid("endless").add_sink(ledger).uid("ledger")
    run_scripted(env, Script(deeds={2: ask}), restore_path=path)
    out = Ledger.committed(ledger.name)
    assert out == list(range(1, len(out) + 1))


# ----------------------------------------------------------------------------------------------------------- failing


def test_a_savepoint_that_cannot_be_written_leaves_the_job_alone(places, tmp_path):
    checkpoints, _ = places
    (tmp_path / "file").write_text("in the way")
    ask = Ask(tmp_path / "file" / "below")
    assert run_scripted(counting(numbers(environment(checkpoints))), Script(deeds={2: ask})).records == EXPECTED
    assert "was not taken" in ask.error and "file" in ask.error


@pytest.mark.parametrize("then", ["stop", "drain"])
def test_stopping_where_no_savepoint_can_be_written_leaves_the_job_alone(places, tmp_path, then):
    checkpoints, _ = places
    (tmp_path / "file").write_text("in the way")
    ask = Ask(tmp_path / "file" / "below", then=then)
    assert run_scripted(counting(numbers(environment(checkpoints))), Script(deeds={2: ask})).records == EXPECTED
    assert "was not taken" in ask.error


def test_a_directory_that_slots_see_otherwise_than_the_driver_is_found_out(places, monkeypatch, tmp_path):
    from ekorn.slot.state import snapshot_writer

    def elsewhere(address, **more):
        return open_files(address.replace("savepoints", "savepoints of another machine"), **more)

    checkpoints, savepoints = places
    monkeypatch.setattr(snapshot_writer, "open_files", elsewhere)
    ask = Ask(savepoints)
    env = environment(checkpoints, data_inline_threshold=0)
    assert run_scripted(counting(numbers(env)), Script(deeds={2: ask})).records == EXPECTED
    assert "the driver and all slots share" in ask.error
    assert list(savepoints.iterdir()) == []


def test_a_savepoint_that_fails_in_a_slot_leaves_nothing_behind_and_the_job_alone(places):
    checkpoints, savepoints = places
    ask = Ask(savepoints)
    # The second epoch carries a checkpoint with the answers of two subtasks: the third answer is the savepoint's first.
    script = Script(failed_snapshots=[3], deeds={2: ask})
    run = run_scripted(counting(numbers(environment(checkpoints))), script)
    assert run.records == EXPECTED and run.handle.progress().restarts == 0
    assert "lost by the script" in ask.error
    assert list(savepoints.iterdir()) == []


@pytest.mark.parametrize("then", ["stop", "drain"])
def test_the_last_savepoint_failing_in_a_slot_restarts_the_job_which_goes_on(places, then):
    checkpoints, savepoints = places
    ask = Ask(savepoints, then=then)
    script = Script(failed_snapshots=[3], deeds={2: ask})
    run = run_scripted(counting(numbers(environment(checkpoints, restarts=1))), script)
    assert run.records == EXPECTED and run.handle.progress().restarts == 1
    assert "lost by the script" in ask.error


def test_the_last_savepoint_failing_in_a_slot_fails_a_job_without_restarts(places):
    checkpoints, savepoints = places
    ask = Ask(savepoints, then="stop")
    run = start_scripted(counting(numbers(environment(checkpoints))), Script(failed_snapshots=[3], deeds={2: ask}))
    assert run.status is JobStatus.FAILED
    with pytest.raises(JobExecutionError, match="savepoint that the job was to end with"):
        run.handle.wait(0)


@pytest.mark.parametrize(("then", "restarts"), [("stop", 0), ("drain", 1)])
def test_a_job_whose_last_savepoint_the_driver_cannot_finish_goes_on(places, then, restarts):
    checkpoints, savepoints = places
    ask = Ask(savepoints, then=then)

    def stand_in_the_way(handle):
        for directory in savepoints.iterdir():
            (directory / "_metadata").mkdir()

    env = environment(checkpoints, restarts=1)
    run = run_scripted(counting(numbers(env)), Script(deeds={2: ask, 3: stand_in_the_way}))
    assert run.records == EXPECTED
    assert run.handle.progress().restarts == restarts  # the input of a job that was drained has ended: it starts anew
    assert "could not write the metadata" in ask.error


def test_after_a_stop_that_failed_a_job_can_be_stopped(places):
    checkpoints, savepoints = places
    first, second = Ask(savepoints, then="stop"), Ask(savepoints, then="stop")

    def stand_in_the_way(handle):
        for directory in savepoints.iterdir():
            (directory / "_metadata").mkdir()

    script = Script(deeds={2: first, 3: stand_in_the_way, 4: second})
    run = run_scripted(counting(numbers(environment(checkpoints))), script)
    assert "could not write the metadata" in first.error
    assert Path(second.path, "_metadata").is_file()
    assert run.records != EXPECTED


def test_a_savepoint_under_way_ends_with_the_attempt(places):
    checkpoints, savepoints = places
    ask = Ask(savepoints)
    script = Script(deeds={2: ask}, crashes=[Crash("in-epoch", 5)])
    run = run_scripted(counting(numbers(environment(checkpoints, restarts=1))), script)
    assert run.records == EXPECTED
    assert "the job failed: slot 0" in ask.error
    assert list(savepoints.iterdir()) == []


@pytest.mark.parametrize("then", ["go on", "cancel"])
@pytest.mark.parametrize("asked_after", [1, 3])
def test_a_job_that_is_cancelled_leaves_nothing_of_a_savepoint_under_way(places, asked_after, then):
    checkpoints, savepoints = places
    ask = Ask(savepoints, then=then)
    # The second epoch carries the savepoint, whose snapshots arrive too late; or the savepoint is never started.
    deeds: dict[int, Callable[[JobHandle], object]] = {asked_after: ask}
    deeds[3] = lambda handle: (ask(handle) if asked_after == 3 else None, handle.cancel())
    env = environment(checkpoints, data_inline_threshold=0)
    script = Script(deeds=deeds, late_snapshots=dict.fromkeys(range(1, 99), 50))
    run = start_scripted(counting(numbers(env)), script)
    assert run.status is JobStatus.CANCELED
    assert "the job has ended (CANCELED)" in ask.error
    assert list(savepoints.rglob("*")) == []


@pytest.mark.parametrize("report", ["written", "not written"])
def test_files_that_a_slot_writes_late_for_an_aborted_savepoint_are_removed_while_the_job_runs(places, report):
    checkpoints, savepoints = places
    ask, seen = Ask(savepoints), []
    abandoned: list[str] = []

    def write_late(handle):
        assert ask.error is not None and list(savepoints.rglob("*")) == []
        (savepoints / abandoned[0]).mkdir()
        (savepoints / abandoned[0] / "v1-s0-00").write_bytes(b"state")

    script = Script(
        checkpoints=(False,),
        failed_snapshots={1} if report == "written" else {1, 2},
        late_snapshots={2: 4},
        deeds={
            1: ask,
            2: lambda handle: abandoned.extend(path.name for path in savepoints.iterdir()),
            4: write_late,
            8: lambda handle: seen.append(list(savepoints.rglob("*"))),
        },
    )
    run = run_scripted(counting(numbers(environment(checkpoints, data_inline_threshold=0))), script)
    assert run.status is JobStatus.FINISHED
    assert abandoned and seen == [[]]


def test_a_job_that_is_over_takes_no_savepoint(tmp_path):
    run = run_scripted(counting(numbers(environment(tmp_path))))
    with pytest.raises(CheckpointError, match=r"the job has ended \(FINISHED\)"):
        run.handle.request_savepoint(str(tmp_path)).result(0)


def test_a_batch_job_takes_no_savepoint(tmp_path):
    env = environment()
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    ask = Ask(tmp_path)
    run_scripted(counting(numbers(env)), Script(deeds={2: ask}))
    assert "BATCH" in ask.error


def test_a_job_is_stopped_once(places):
    checkpoints, savepoints = places
    first, second = Ask(savepoints, then="stop"), Ask(savepoints, then="drain")
    script = Script(deeds={2: lambda handle: (first(handle), second(handle))})
    assert run_scripted(counting(numbers(environment(checkpoints))), script).status is JobStatus.FINISHED
    assert first.path and "already" in second.error


# ------------------------------------------------------------------------------------- what a restart goes back to

POINTS = ["before-epoch", "in-epoch", "after-epoch", "before-notify", "in-notify", "after-notify", "after-deploy"]


@pytest.mark.parametrize("prefer", [False, True])
@pytest.mark.parametrize("point", POINTS)
def test_whatever_fails_after_a_savepoint_records_come_out_once(places, point, prefer):
    checkpoints, savepoints = places
    for count in (1, 3, 5, 7):
        ledger = Ledger(f"{point} {count} {prefer}")
        env = environment(checkpoints, restarts=3, prefer_checkpoint_for_recovery=prefer)
        stream = counting(numbers(env))
        stream.add_sink(ledger).uid("ledger")
        script = Script(
            checkpoints=[False, False, True],
            deeds={2: Ask(savepoints), 4: Ask(savepoints)},
            crashes=[Crash(point, count)],
        )
        run = run_scripted(stream, script)
        assert run.records == EXPECTED, count
        assert Ledger.committed(ledger.name) == EXPECTED, count


@pytest.mark.parametrize("prefer", [False, True])
def test_a_restart_goes_back_to_a_newer_savepoint_unless_checkpoints_are_preferred(places, prefer):
    checkpoints, savepoints = places
    env = environment(checkpoints, restarts=1, prefer_checkpoint_for_recovery=prefer)
    ask = Ask(savepoints)
    # The second epoch carries checkpoint 1, the third savepoint 2; then the job crashes.
    script = Script(checkpoints=[False, True] + [False] * 99, deeds={2: ask}, crashes=[Crash("after-epoch", 5)])
    run = run_scripted(counting(numbers(env)), script)
    assert run.records == EXPECTED
    assert run.engine.restored_ids == [None, 1 if prefer else 2]


@pytest.mark.parametrize("subdir", [True, False])
def test_a_finished_job_leaves_no_note_of_its_savepoints(places, subdir):
    checkpoints, savepoints = places
    ask = Ask(savepoints)
    script = Script(checkpoints=[False, True] + [False] * 99, deeds={2: ask})
    run_scripted(counting(numbers(environment(checkpoints, create_subdir=subdir))), script)
    assert [path for path in checkpoints.rglob("*") if path.is_file()] == []
    assert (Path(ask.path) / "_metadata").exists(), "the savepoint is the user's"


def test_a_savepoint_that_was_disposed_of_is_not_gone_back_to(places, caplog):
    checkpoints, savepoints = places
    ask = Ask(savepoints)
    script = Script(
        checkpoints=[False, True] + [False] * 99,
        deeds={2: ask, 4: lambda handle: shutil.rmtree(savepoints)},
        crashes=[Crash("after-epoch", 6)],
    )
    run = run_scripted(counting(numbers(environment(checkpoints, restarts=1))), script)
    assert run.records == EXPECTED
    assert run.engine.restored_ids == [None, 1]
    assert "savepoint 2 no longer exists" in caplog.text


@pytest.mark.parametrize("prefer", [False, True])
@pytest.mark.parametrize("then", ["stop", "drain"])
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("where", ["in-notify", "after-notify"])
def test_a_job_that_fails_while_it_ends_goes_back_to_what_its_sinks_heard_of(places, then, where, count, prefer):
    checkpoints, savepoints = places
    name = f"{then} {where} {count} {prefer}"
    ledger = Ledger(name)

    def program():
        env = environment(checkpoints, restarts=1, prefer_checkpoint_for_recovery=prefer)
        counting(numbers(env)).add_sink(ledger).uid("ledger")
        return env

    ask = Ask(savepoints, then=then)
    script = Script(checkpoints=[False], deeds={3: ask}, crashes=[Crash(where, count)])
    run = run_scripted(program(), script)
    if run.handle.progress().restarts:
        assert Ledger.committed(name) == EXPECTED
        assert "was taken" in ask.error and "did not end with it" in ask.error
    else:  # a request is answered only once
        assert ask.path and Ledger.committed(name) == EXPECTED[:9], "the sources read nothing after the request"


@pytest.mark.parametrize("subdir", [True, False])
@pytest.mark.parametrize("then", ["stop", "drain"])
def test_the_next_driver_finds_the_savepoint_that_the_job_was_ending_with(places, then, subdir):
    checkpoints, savepoints = places
    ledger, job_id = Ledger(f"driver dies, {then}"), JobID.generate()

    def program():
        env = environment(checkpoints, create_subdir=subdir)
        retention = ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
        env.get_checkpoint_config().set_externalized_checkpoint_retention(retention)
        counting(numbers(env)).add_sink(ledger).uid("ledger")
        return env

    script = Script(
        checkpoints=[False, True] + [False] * 99,
        deeds={3: Ask(savepoints, then=then)},
        crashes=[Crash("in-notify", 2)],
        driver_dies=True,
    )
    with pytest.raises(DriverDied):
        start_scripted(program(), script, job_id=job_id)
    assert 0 < len(Ledger.committed(ledger.name)) < COUNT
    # A directory that is not named after a job belongs to the job that is started on it.
    run = run_scripted(program(), job_id=job_id if subdir else JobID.generate())
    assert run.engine.restored_ids == [2]
    assert Ledger.committed(ledger.name) == EXPECTED
