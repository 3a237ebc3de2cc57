"""The life of a job on the local engine: restarts, cancelling, retained checkpoints, and what a job starts from."""

import gc
import threading
import weakref
from pathlib import Path
from random import Random

import pytest

from ekorn import faults
from ekorn.checkpoint.file_names import created_for
from ekorn.clock import SystemClock
from ekorn.common import Configuration, JobStatus, RestartStrategies, WatermarkStrategy
from ekorn.common.accumulators import Accumulator, IntCounter
from ekorn.common.job_id import JobID
from ekorn.datastream import ExternalizedCheckpointRetention, RuntimeExecutionMode, StreamExecutionEnvironment
from ekorn.datastream.functions import KeyedProcessFunction, MapFunction
from ekorn.datastream.state import ListStateDescriptor, ValueStateDescriptor
from ekorn.driver.job_handle import JobHandle
from ekorn.driver.job_outcome import note_outcomes_with
from ekorn.driver.loop.job_loop import JobLoop
from ekorn.errors import CheckpointError, EkornError, JobCancelledError, JobExecutionError, RestoreError
from ekorn.functions.source_contract import SourceFunction
from ekorn.functions.state.checkpointed import CheckpointedFunction, CheckpointListener
from ekorn.testing.drawn_job import drawn_job
from ekorn.testing.local_engine import LocalEngine
from ekorn.testing.scripted import Crash, DriverDied, Script, ScriptedSource, run_scripted, start_scripted
from tests.driver.submitted_jobs import start_locally

RETENTION = ExternalizedCheckpointRetention
WAIT_S = 60  # how long a test waits for another thread


def environment(directory=None, restarts=0, **keys):
    configuration = Configuration()
    for key, value in keys.items():
        configuration.set_string(f"execution.checkpointing.{key.replace('_', '-')}", str(value).lower())
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    if directory is not None:
        env.enable_checkpointing(10)
        env.get_checkpoint_config().set_checkpoint_storage_dir(str(directory))
    env.set_restart_strategy(
        RestartStrategies.fixed_delay_restart(restarts, 0) if restarts else RestartStrategies.no_restart()
    )
    return env


def numbers(env, count=20, runs=(3,), uid="numbers"):
    source = ScriptedSource([range(count)], runs)
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid(uid)


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield ctx.get_current_key(), self.count.value()


def counting(stream):
    return stream.key_by(lambda n: n % 2).process(Count()).uid("count")


EXPECTED = [(n % 2, n // 2 + 1) for n in range(20)]


class FailFor(MapFunction):
    """Fails on a record in the first attempts."""

    def __init__(self, record, attempts):
        self.record, self.attempts = record, attempts

    def open(self, runtime_context):
        self.attempt = runtime_context.get_attempt_number()

    def map(self, value):
        if value == self.record and self.attempt < self.attempts:
            raise ValueError(f"no {value} in attempt {self.attempt}")
        return value


# -------------------------------------------------------------------------------------------------------- restarts


def test_a_failure_within_the_restart_budget_changes_no_result(tmp_path):
    run = run_scripted(counting(numbers(environment(tmp_path, restarts=2)).map(FailFor(13, 2))))
    assert run.records == EXPECTED
    assert run.handle.progress().restarts == 2
    assert run.handle.progress().attempt == 2


def test_when_restarts_are_used_up_the_error_tells_who_where_on_what_and_why(tmp_path):
    stream = numbers(environment(tmp_path, restarts=2)).map(FailFor(13, 99)).name("picky").uid("picky-uid")
    run = start_scripted(counting(stream))
    assert run.status is JobStatus.FAILED
    with pytest.raises(JobExecutionError) as caught:
        run.handle.wait(0)
    error = caught.value
    assert (error.operator_name, error.uid, error.subtask_index) == ("picky", "picky-uid", 0)
    assert error.record_preview == "13"
    assert error.message == "ValueError: no 13 in attempt 2"
    assert error.restarts == 2
    assert 'raise ValueError(f"no {value} in attempt {self.attempt}")' in str(error.user_traceback)
    assert "chain" not in str(error.user_traceback) and "src/ekorn" not in str(error.user_traceback)
    assert "picky" in str(error) and "13" in str(error)


def test_without_a_restart_strategy_the_first_failure_ends_the_job():
    run = start_scripted(numbers(environment()).map(FailFor(3, 1)))
    with pytest.raises(JobExecutionError, match="no 3 in attempt 0"):
        run.handle.wait(0)
    assert run.handle.progress().restarts == 0


def test_failure_rate_bears_so_many_failures_within_its_interval():
    for attempts, status in ((2, JobStatus.FINISHED), (3, JobStatus.FAILED)):
        env = environment()
        env.set_restart_strategy(RestartStrategies.failure_rate_restart(2, 60_000, 0))
        assert start_scripted(numbers(env).map(FailFor(3, attempts))).status is status


class MapWith(MapFunction):
    """A map function with methods that the test gives."""

    def __init__(self, **methods):
        self.methods = methods

    def open(self, runtime_context):
        self.methods.get("open", lambda c: None)(runtime_context)

    def close(self):
        self.methods.get("close", lambda: None)()

    def map(self, value):
        return value


def refuse(*args):
    raise KeyError("refused")


def test_an_error_in_open_names_the_operator_and_no_record():
    run = start_scripted(numbers(environment()).map(MapWith(open=refuse)).name("opened"))
    with pytest.raises(JobExecutionError, match="refused") as caught:
        run.handle.wait(0)
    assert caught.value.operator_name == "opened"
    assert caught.value.record_preview is None


def test_an_error_in_close_after_all_records_fails_the_job():
    run = start_scripted(numbers(environment()).map(MapWith(close=refuse)).name("closed"))
    with pytest.raises(JobExecutionError, match="refused") as caught:
        run.handle.wait(0)
    assert caught.value.operator_name == "closed"


def test_an_error_in_close_does_not_hide_the_error_before_it():
    run = start_scripted(numbers(environment()).map(FailFor(3, 1)).map(MapWith(close=refuse)))
    with pytest.raises(JobExecutionError, match="no 3 in attempt 0"):
        run.handle.wait(0)


class FailsInCheckpoint(MapFunction, CheckpointedFunction, CheckpointListener):
    def __init__(self, where):
        self.where = where

    def open(self, runtime_context):
        self.first = runtime_context.get_attempt_number() == 0

    def map(self, value):
        return value

    def initialize_state(self, context):
        pass

    def snapshot_state(self, context):
        if self.where == "snapshot" and self.first:
            raise OSError("no snapshot")

    def notify_checkpoint_complete(self, checkpoint_id):
        if self.where == "notify" and self.first:
            raise OSError("no notification")


@pytest.mark.parametrize("where", ["snapshot", "notify"])
def test_an_error_of_the_user_s_in_a_checkpoint_restarts_the_job(tmp_path, where):
    run = run_scripted(counting(numbers(environment(tmp_path, restarts=1)).map(FailsInCheckpoint(where))))
    assert run.records == EXPECTED
    assert run.handle.progress().restarts == 1
    assert f"no {'snapshot' if where == 'snapshot' else 'notification'}" in str(run.handle.progress().last_failure)


class Missing(MapFunction):
    """Raises FileNotFoundError from user code when it is opened again."""

    def open(self, runtime_context):
        if runtime_context.get_attempt_number() == 1:
            raise FileNotFoundError("/the/users/own/file")

    def map(self, value):
        return value


def test_a_file_that_user_code_misses_costs_no_checkpoint(tmp_path):
    env = environment(tmp_path, restarts=2)
    run = run_scripted(counting(numbers(env).map(Missing())), Script(crashes=[Crash("after-epoch", 5)]))
    assert run.records == EXPECTED
    assert run.handle.progress().restarts == 2


def test_what_cannot_be_released_at_the_end_does_not_keep_the_end_from_the_program(tmp_path, caplog):
    def fail(outcome):
        raise RuntimeError("a client of the storage, and no OSError")

    note_outcomes_with(fail)
    try:
        run = run_scripted(counting(numbers(environment(tmp_path))))
    finally:
        note_outcomes_with(None)
    assert (run.handle.status(), run.records) == (JobStatus.FINISHED, EXPECTED)
    assert "a client of the storage" in caplog.text


def test_handle_of_an_ended_job_keeps_neither_its_engine_nor_its_loop(tmp_path):
    graph, chosen = drawn_job(counting(numbers(environment(tmp_path))))
    handle, kept = JobHandle(chosen.job_id, chosen.job_name), list[weakref.ref[object]]()

    def make(graph):
        engine = LocalEngine(graph)
        kept.append(weakref.ref(engine))
        return engine

    loop = JobLoop(graph, chosen, handle, make, clock=SystemClock(), chance=Random(0))
    kept.append(weakref.ref(loop))
    loop.run()
    del loop
    gc.collect()
    assert [reference() for reference in kept] == [None, None]
    assert (handle.view.thread_stacks(0), handle.view.slot_log(0)) == ([], None)


def test_state_declared_otherwise_than_restored_is_not_retried(tmp_path):
    newest = interrupted(tmp_path)
    env = environment(tmp_path, restarts=5)

    class Other(Count):
        def open(self, runtime_context):
            self.count = runtime_context.get_list_state(ListStateDescriptor("count"))

    stream = numbers(env).key_by(lambda n: n % 2).process(Other()).uid("count")
    run = start_scripted(stream, restore_path=newest)
    with pytest.raises(JobExecutionError, match=r"'count'.*: it was saved as value state and is declared as list"):
        run.handle.wait(0)
    assert run.handle.progress().restarts == 0


def test_a_batch_job_that_restarts_gives_every_result_once():
    env = environment(restarts=1)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    before = numbers(env).key_by(lambda n: n % 2).reduce(lambda a, b: a + b)
    stream = before.union(numbers(env, 5, uid="more")).map(FailFor(4, 1))
    run = run_scripted(stream)
    assert sorted(run.records) == [0, 1, 2, 3, 4, 90, 100]
    assert run.handle.progress().restarts == 1


# ------------------------------------------------------------------------------------------------------- cancelling


class Endless(SourceFunction):
    """Emits numbers until it is cancelled, or nothing at all."""

    def __init__(self, silent=False):
        self.silent = silent

    def open(self, runtime_context):
        self.stop = threading.Event()

    def run(self, ctx):
        number = 0
        while not self.stop.is_set():
            if self.silent:
                self.stop.wait()
            else:
                ctx.collect(number)
                number += 1

    def cancel(self):
        self.stop.set()


def when(handle, condition):
    """Wait until the handle's progress or accumulators meet a condition."""
    met = threading.Event()
    update, set_accumulators = handle.view.update, handle.results.set_accumulators

    def look(then, *args):
        then(*args)
        if condition(handle):
            met.set()

    handle.view.update = lambda progress: look(update, progress)
    handle.results.set_accumulators = lambda merged: look(set_accumulators, merged)
    if condition(handle):
        met.set()
    assert met.wait(WAIT_S)


@pytest.mark.parametrize("silent", [False, True], ids=["running", "idle"])
@pytest.mark.parametrize("checkpoints", [False, True], ids=["", "with checkpoints"])
def test_a_job_can_be_cancelled(tmp_path, silent, checkpoints):
    env = environment(tmp_path if checkpoints else None)
    env.add_source(Endless(silent)).map(lambda n: n).print()
    handle = start_locally(env)
    when(handle, lambda h: h.progress().epochs >= 2)
    handle.cancel()
    with pytest.raises(JobCancelledError):
        handle.wait(WAIT_S)
    assert handle.status() is JobStatus.CANCELED


def test_a_job_that_waits_for_its_restart_can_be_cancelled():
    env = environment()
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(5, 3_600_000))
    numbers(env).map(FailFor(3, 99)).print()
    handle = start_locally(env)
    when(handle, lambda h: h.status() is JobStatus.RESTARTING)
    handle.cancel()
    with pytest.raises(JobCancelledError):
        handle.wait(WAIT_S)


def test_cancelling_a_job_that_is_over_changes_nothing(capsys):
    env = environment()
    numbers(env, 2).print()
    handle = start_locally(env)
    handle.wait(WAIT_S)
    handle.cancel()
    assert handle.status() is JobStatus.FINISHED
    assert capsys.readouterr().out.splitlines() == ["0", "1"]


# ----------------------------------------------------------------------------------------------------- accumulators


class Counting(MapFunction):
    def __init__(self, name="seen", accumulator=IntCounter):
        self.name, self.accumulator = name, accumulator

    def open(self, runtime_context):
        self.seen = self.accumulator()
        runtime_context.add_accumulator(self.name, self.seen)

    def map(self, value):
        self.seen.add(1)
        return value


def test_accumulators_can_be_read_while_the_job_runs():
    env = environment()
    env.add_source(Endless()).map(Counting()).filter(lambda n: False).print()
    handle = start_locally(env)
    when(handle, lambda h: h.accumulators().get("seen", 0) > 100)
    assert handle.status() is JobStatus.RUNNING
    handle.cancel()
    with pytest.raises(JobCancelledError):
        handle.wait(WAIT_S)


def test_accumulators_of_all_operators_and_subtasks_are_one_by_name():
    env = environment()
    env.set_parallelism(3)
    numbers(env).rebalance().map(Counting()).key_by(lambda n: n).map(Counting()).print()
    assert run_scripted(env).handle.wait(0).get_accumulator_result("seen") == 40


def test_accumulators_count_the_last_attempt_only(tmp_path):
    """Flink: accumulators are not part of checkpoints."""
    env = environment(tmp_path, restarts=1)
    numbers(env, runs=(5,)).map(Counting()).map(FailFor(12, 1)).print()
    assert run_scripted(env).handle.wait(0).get_accumulator_result("seen") == 10


class Unreadable(Accumulator):
    def add(self, value):
        pass

    def get_local_value(self):
        raise RuntimeError("nothing to read")

    def reset_local(self):
        pass

    def merge(self, other):
        pass

    def clone(self):
        return Unreadable()


def test_an_accumulator_that_cannot_be_read_ends_the_job_with_an_error():
    env = environment()
    numbers(env).map(Counting(accumulator=Unreadable)).print()
    with pytest.raises(JobExecutionError, match="nothing to read"):
        run_scripted(env)


def test_two_kinds_of_accumulator_under_one_name_are_refused_by_both_names():
    env = environment()
    numbers(env).map(Counting()).map(Counting("other", Unreadable)).key_by(lambda n: n).map(Counting("other")).print()
    run = start_scripted(env)
    with pytest.raises(JobExecutionError, match=r"'other' is a \w+ in one operator and a \w+ in another"):
        run.handle.wait(0)


# ------------------------------------------------------------------------------------- what is kept, and started from


def completed(directory):
    return sorted(path.parent.name for path in Path(directory).glob("*/chk-*/_metadata"))


@pytest.mark.parametrize(
    ("retention", "kept_on"),
    [
        (RETENTION.NO_EXTERNALIZED_CHECKPOINTS, set()),
        (RETENTION.DELETE_ON_CANCELLATION, {"FAILED"}),
        (RETENTION.RETAIN_ON_CANCELLATION, {"FAILED", "CANCELED"}),
    ],
)
@pytest.mark.parametrize("end", ["FINISHED", "CANCELED", "FAILED"])
def test_checkpoints_are_kept_as_the_table_says(tmp_path, retention, kept_on, end):
    env = environment(tmp_path)
    env.get_checkpoint_config().set_externalized_checkpoint_retention(retention)
    if end == "CANCELED":
        env.add_source(Endless()).map(lambda n: n).filter(lambda n: False).print()
        handle = start_locally(env)
        when(handle, lambda h: h.progress().checkpoints_completed >= 1)
        handle.cancel()
        with pytest.raises(JobCancelledError):
            handle.wait(WAIT_S)
    else:
        counting(numbers(env).map(FailFor(19, 99 if end == "FAILED" else 0))).print()
        handle = start_scripted(env).handle
        assert handle.progress().checkpoints_completed > 1
    assert handle.status().name == end
    assert len(completed(tmp_path)) == (1 if end in kept_on else 0)
    if end not in kept_on:
        assert list(tmp_path.rglob("*")) == []


def test_so_many_checkpoints_are_kept_as_configured(tmp_path):
    env = environment(tmp_path, num_retained=3)
    env.get_checkpoint_config().set_externalized_checkpoint_retention(RETENTION.RETAIN_ON_CANCELLATION)
    start_scripted(counting(numbers(env, runs=(2,))), Script(crashes=[Crash("after-epoch", 9)]))
    assert completed(tmp_path) == ["chk-5", "chk-6", "chk-7"]


def interrupted(directory, job_id=None, crash=None, **keys):
    """Run the counting job until its driver dies; return the newest checkpoint."""
    env = environment(directory, **keys)
    env.get_checkpoint_config().set_externalized_checkpoint_retention(RETENTION.RETAIN_ON_CANCELLATION)
    script = Script(crashes=[crash or Crash("after-epoch", 5)], driver_dies=True)
    with pytest.raises(DriverDied):
        start_scripted(counting(numbers(env)), script, **({"job_id": job_id} if job_id else {}))
    return str(max(Path(directory).glob("*/chk-*/_metadata"), key=lambda path: int(path.parent.name[4:])).parent)


def test_a_new_driver_of_the_same_job_goes_on_by_itself(tmp_path):
    job_id = JobID.generate()
    interrupted(tmp_path, job_id)
    run = run_scripted(counting(numbers(environment(tmp_path))), job_id=job_id)
    assert run.records == EXPECTED[-len(run.records) :]
    assert 0 < len(run.records) < 20


@pytest.mark.parametrize("suffix", ["", "/", "/_metadata"])
def test_a_job_starts_from_the_checkpoint_it_is_given(tmp_path, suffix):
    newest = interrupted(tmp_path)
    run = run_scripted(counting(numbers(environment(tmp_path))), restore_path=newest + suffix)
    assert run.records == EXPECTED[-len(run.records) :]
    assert 0 < len(run.records) < 20
    assert Path(newest, "_metadata").exists(), "it belongs to the user"


def test_a_job_with_its_own_checkpoints_does_not_go_back_to_the_one_it_started_from(tmp_path):
    newest = interrupted(tmp_path)
    env = environment(tmp_path, restarts=3)
    run = run_scripted(counting(numbers(env)), Script(crashes=[Crash("after-epoch", 3)]), restore_path=newest)
    assert run.records == EXPECTED[-len(run.records) :]


@pytest.mark.parametrize("what", ["_metadata", "shared"])
@pytest.mark.parametrize("damage", ["cut", "gone", "changed"])
def test_a_damaged_newest_checkpoint_is_passed_over_for_an_older_one(tmp_path, caplog, what, damage):
    job_id = JobID.generate()
    keys = {"num_retained": 3, "data_inline_threshold": 0, "incremental": True}
    newest = Path(interrupted(tmp_path, job_id, **keys))
    victim = newest / "_metadata" if what == "_metadata" else newest_shared(newest)
    data = victim.read_bytes()
    if damage == "gone":
        victim.unlink()
    else:
        victim.write_bytes(data[: len(data) // 2] if damage == "cut" else data[:-3] + bytes(b ^ 1 for b in data[-3:]))
    run = run_scripted(counting(numbers(environment(tmp_path, **keys))), job_id=job_id)
    assert run.records == EXPECTED[-len(run.records) :]
    if (what, damage) != ("_metadata", "gone"):  # without metadata the checkpoint does not exist
        assert "instead of" in caplog.text


def newest_shared(checkpoint):
    """Return a file that this checkpoint refers to and the one before it does not."""
    number = int(checkpoint.name[4:])
    shared = checkpoint.parent / "shared"
    return next(path for path in shared.iterdir() if created_for(f"shared/{path.name}") == number)


def test_when_no_checkpoint_can_be_read_the_job_does_not_start_empty(tmp_path):
    job_id = JobID.generate()
    newest = interrupted(tmp_path, job_id, num_retained=2)
    for path in Path(newest).parent.glob("chk-*/_metadata"):
        path.write_bytes(b"damaged")
    with pytest.raises(RestoreError, match="none of the checkpoints"):
        start_scripted(counting(numbers(environment(tmp_path))), job_id=job_id)


def test_a_state_file_damaged_while_the_job_runs_costs_one_checkpoint_not_the_job(tmp_path):
    env = environment(tmp_path, restarts=5, num_retained=3, data_inline_threshold=0, incremental=True)
    stream = counting(numbers(env).map(Damage(str(tmp_path))))
    run = run_scripted(stream)
    assert run.records[-1] == EXPECTED[-1]
    assert set(run.records) == set(EXPECTED)


class Damage(MapFunction):
    """Damages all files of the newest checkpoint, then fails, once."""

    def __init__(self, directory):
        self.directory = directory

    def open(self, runtime_context):
        self.first = runtime_context.get_attempt_number() == 0

    def map(self, value):
        if value == 13 and self.first:
            newest = max(Path(self.directory).glob("*/chk-*/_metadata"), key=lambda path: int(path.parent.name[4:]))
            newest.write_bytes(newest.read_bytes()[:-5])
            raise ValueError("the disk is bad")
        return value


@pytest.mark.parametrize(
    ("path", "message"),
    [("nowhere", "no checkpoint at"), ("", "give one of the checkpoints below it"), ("shared", "no checkpoint at")],
)
def test_a_path_without_a_checkpoint_is_refused_when_the_job_is_submitted(tmp_path, path, message):
    job = Path(interrupted(tmp_path)).parent
    with pytest.raises(RestoreError, match=message):
        start_scripted(counting(numbers(environment())), restore_path=str(job / path))


def test_state_that_no_operator_takes_is_refused_unless_allowed(tmp_path):
    newest = interrupted(tmp_path)

    def changed(env):
        return numbers(env).key_by(lambda n: n % 2).process(Count()).uid("renamed")

    with pytest.raises(RestoreError, match=r"'count'|count"):
        start_scripted(changed(environment()), restore_path=newest)
    run = run_scripted(changed(environment()), restore_path=newest, allow_non_restored_state=True)
    assert run.records[0][1] == 1, "the renamed operator starts empty"
    assert len(run.records) < 20, "the source does not"


def test_another_max_parallelism_than_the_stored_one_is_refused(tmp_path):
    newest = interrupted(tmp_path)
    env = environment()
    env.set_max_parallelism(64)
    with pytest.raises(RestoreError, match="128"):
        start_scripted(counting(numbers(env)), restore_path=newest)


def test_a_refused_job_leaves_the_directory_to_the_next_one(tmp_path):
    job_id = JobID.generate()
    interrupted(tmp_path, job_id)
    env = environment(tmp_path)
    with pytest.raises(RestoreError):
        start_scripted(numbers(env).key_by(lambda n: n).process(Count()).uid("renamed"), job_id=job_id)
    assert run_scripted(counting(numbers(environment(tmp_path))), job_id=job_id).status is JobStatus.FINISHED


# ------------------------------------------------------------------------------------------------ finished subtasks


class Once(SourceFunction):
    """Emits its records each time it is run: it has no state to restore."""

    def run(self, ctx):
        for n in range(5):
            ctx.collect(("once", n))

    def cancel(self):
        pass


@pytest.mark.parametrize("kill", [False, True])
def test_a_source_that_had_ended_in_a_checkpoint_is_not_run_again(tmp_path, kill):
    env = environment(tmp_path, restarts=5)
    long = numbers(env, 40, runs=(1,)).map(lambda n: ("long", n))
    both = env.add_source(Once()).uid("once").union(long)
    counts = both.key_by(lambda v: v[0]).process(Count())
    run = run_scripted(counts, Script(crashes=[Crash("after-epoch", 30)], kill=kill))
    assert sorted(run.records) == sorted([("once", n) for n in range(1, 6)] + [("long", n) for n in range(1, 41)])
    assert run.handle.progress().restarts == 1
    assert any(order.settled for order in run.epochs), "later checkpoints do without the source that has ended"


def test_checkpoints_go_on_when_some_subtasks_of_a_source_have_ended(tmp_path):
    env = environment(tmp_path, restarts=5)
    env.set_parallelism(2)
    source = ScriptedSource([range(3), range(100, 130)], [1])
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "uneven")
    run = run_scripted(counting(stream), Script(crashes=[Crash("after-epoch", 20)]))
    assert len(run.records) == 33
    assert max(run.records) == (1, 16)
    replayed = run.epochs[20].number - max(e.number for e in run.epochs[:20] if e.checkpoint_id is not None)
    assert replayed <= 2, "the job went back to a recent checkpoint"
    assert len(run.epochs) < 45


# ----------------------------------------------------------------------------------------------- failing checkpoints


@pytest.mark.parametrize(("tolerable", "status"), [(0, JobStatus.FAILED), (1, JobStatus.FINISHED)])
def test_a_checkpoint_that_cannot_be_written_is_borne_as_often_as_configured(tmp_path, monkeypatch, tolerable, status):
    monkeypatch.setenv("EKORN_FAULT", "before-metadata:*:2:full")
    faults.reset_counts()
    env = environment(tmp_path)
    env.get_checkpoint_config().set_tolerable_checkpoint_failure_number(tolerable)
    run = start_scripted(counting(numbers(env)))
    assert run.status is status
    if status is JobStatus.FAILED:
        with pytest.raises(JobExecutionError, match="No space left") as caught:
            run.handle.wait(0)
        assert isinstance(caught.value.cause, CheckpointError)
    else:
        assert list(run.handle.results.records()) == EXPECTED


def test_state_too_large_for_the_driver_s_memory_says_what_to_set():
    env = environment()
    env.enable_checkpointing(10)
    stream = numbers(env).key_by(lambda n: n).map_with_state(lambda n, s: (n, "x" * 1_000_000))
    run = start_scripted(stream)
    with pytest.raises(JobExecutionError, match=r"execution\.checkpointing\.dir"):
        run.handle.wait(0)


def test_a_checkpoint_directory_that_cannot_be_written_to_is_refused_at_once(tmp_path):
    file = tmp_path / "file"
    file.write_text("in the way")
    with pytest.raises(EkornError, match="cannot write checkpoints"):
        start_scripted(numbers(environment(file)))
