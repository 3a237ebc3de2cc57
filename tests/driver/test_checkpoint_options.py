"""Every checkpoint option and its effect on a job: scripted, in process, on a virtual clock of ten ms an epoch."""

import itertools
import json
import logging
from pathlib import Path

import pytest

from ekorn.checkpoint.coordinator import CheckpointStats
from ekorn.checkpoint.restore_point import resolve
from ekorn.common import Configuration, JobStatus, WatermarkStrategy
from ekorn.datastream import (
    CheckpointingMode,
    ExternalizedCheckpointRetention,
    JobManagerCheckpointStorage,
    MemoryStateBackend,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from ekorn.datastream.functions import KeyedProcessFunction, MapFunction
from ekorn.datastream.state import ListStateDescriptor, ValueStateDescriptor
from ekorn.driver.checkpoints.job_checkpoints import patience_of
from ekorn.errors import ConfigurationError, JobExecutionError
from ekorn.functions.state.checkpointed import CheckpointedFunction, CheckpointListener
from ekorn.testing.scripted import Crash, Script, ScriptedSource, run_scripted, start_scripted
from tests.driver.savepoint_programs import EXPECTED, Ask, Ledger, counting, environment, numbers

RETAIN = ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION


MANY = 40
EPOCH_MS = 11  # ten, and one for every wait of the job


def many(env, **more):
    """Return a stream of forty numbers, one in each epoch, which is long enough for every schedule."""
    return counting(numbers(env, count=MANY, runs=(1,), **more))


def carried(run):
    """Return the epochs, from 1, that carried a checkpoint, without the final one after the end of the input."""
    return [n for n, order in enumerate(run.epochs, start=1) if order.checkpoint_id is not None][:-1]


def gaps_ms(run):
    """Return the times between the starts of two checkpoints."""
    times = [run.engine.started_ms[epoch - 1] for epoch in carried(run)]
    return [b - a for a, b in itertools.pairwise(times)]


# -------------------------------------------------------------------------------------------------- when they are taken


@pytest.mark.parametrize("interval", [10, 20, 50])
def test_interval(tmp_path, interval):
    run = run_scripted(many(environment(tmp_path, interval=interval)))
    gaps = gaps_ms(run)
    assert all(abs(gap - interval) <= EPOCH_MS for gap in gaps)
    assert sum(gaps) / len(gaps) == pytest.approx(max(interval, EPOCH_MS), rel=0.1)


def test_min_pause(tmp_path):
    run = run_scripted(many(environment(tmp_path, interval=10, min_pause="35 ms")))
    assert all(35 <= gap <= 35 + 2 * EPOCH_MS for gap in gaps_ms(run)) and len(gaps_ms(run)) > 5


def test_a_failed_checkpoint_starts_no_pause(tmp_path):
    env = environment(tmp_path, interval=10, min_pause="35 ms", tolerable_failed_checkpoints=1)
    run = run_scripted(many(env), Script(failed_snapshots=[1]))
    first, second = carried(run)[:2]
    assert second - first < 4


def test_max_concurrent_checkpoints(tmp_path):
    late = {1: 6, 3: 6}  # the sources' answers to the first two checkpoints
    under_way = {}
    for limit in (1, 2, 3):
        env = environment(tmp_path / str(limit), max_concurrent_checkpoints=limit)
        run = run_scripted(many(env), Script(late_snapshots=late))
        assert len(run.records) == MANY
        # Within the six epochs that the first checkpoint waits, this many are begun.
        under_way[limit] = sum(1 for epoch in carried(run) if epoch < carried(run)[0] + 6)
    assert under_way[1] == 1 and under_way[2] == 2 and under_way[3] > 2


@pytest.mark.parametrize("in_a_moment", [True, False])
def test_an_epoch_waits_a_moment_for_the_checkpoint_before_if_one_is_due(tmp_path, in_a_moment):
    """Epochs are as long as the interval: without the wait only every second one would carry a checkpoint."""
    late = dict.fromkeys(range(5, 31), 1)  # neither those of the first checkpoints nor of the last
    script = Script(late_snapshots=late, late_until_wait=in_a_moment)
    run = run_scripted(many(environment(tmp_path, interval=10)), script)
    gaps = [b - a for a, b in itertools.pairwise(carried(run)[:15])][2:]
    assert set(gaps) == ({1} if in_a_moment else {2})


def completed_in(async_ms):
    return CheckpointStats(
        1,
        "checkpoint",
        True,
        triggered_ms=0,
        ended_ms=1,
        barrier_ms=None,
        bytes_written=0,
        longest_sync_ms=0.0,
        longest_async_ms=async_ms,
        why=None,
    )


@pytest.mark.parametrize(
    ("interval_ms", "async_ms", "patience_ms"),
    [(500, 0.0, 50), (500, 25.0, 50), (500, 25.1, 0), (5_000, 50.0, 100), (5_000, 50.1, 0), (500, None, 0)],
)
def test_a_checkpoint_is_waited_for_if_the_last_one_was_written_in_much_less_time(interval_ms, async_ms, patience_ms):
    last = None if async_ms is None else completed_in(async_ms)
    assert patience_of(interval_ms, last) == patience_ms


class HearsOfAborts(MapFunction, CheckpointListener):
    heard: list[int] = []

    def map(self, value):
        return value

    def notify_checkpoint_complete(self, checkpoint_id):
        pass

    def notify_checkpoint_aborted(self, checkpoint_id):
        HearsOfAborts.heard.append(checkpoint_id)


def test_functions_hear_of_an_aborted_checkpoint_while_the_job_goes_on(tmp_path):
    HearsOfAborts.heard.clear()
    env = environment(tmp_path, tolerable_failed_checkpoints=1)
    run = run_scripted(numbers(env).map(HearsOfAborts()), Script(failed_snapshots=[1]))
    assert run.handle.progress().checkpoints_failed == 1
    assert HearsOfAborts.heard == [1]


def test_functions_do_not_hear_of_a_checkpoint_that_ends_with_their_attempt(tmp_path):
    HearsOfAborts.heard.clear()
    env = environment(tmp_path, restarts=1)
    script = Script(crashes=[Crash("after-epoch", 2)], late_snapshots={1: 9}, kill=False)
    assert run_scripted(numbers(env).map(HearsOfAborts()), script).handle.progress().checkpoints_failed >= 1
    assert HearsOfAborts.heard == []


def test_a_running_job_shows_that_its_driver_is_alive(tmp_path):
    signs = []

    def look(handle):
        (alive,) = tmp_path.glob("*/owner/alive-*")
        signs.append(json.loads(alive.read_text())["now_ms"])

    env = environment(tmp_path)
    env.configure(Configuration().set_string("ekorn.checkpoint.owner-lease", "60 ms"))
    run_scripted(numbers(env, runs=(1,)), Script(deeds={6: look, 12: look}))
    assert signs[0] < signs[1]


def test_a_pause_leaves_room_for_one_at_a_time(tmp_path):
    env = environment(tmp_path, min_pause="1 ms")
    run = run_scripted(many(env), Script(late_snapshots={1: 6}))
    assert carried(run)[1] >= carried(run)[0] + 6


@pytest.mark.parametrize("interval", [None, 40])
def test_interval_during_backlog(tmp_path, interval):
    keys = {} if interval is None else {"interval_during_backlog": interval}
    gaps = gaps_ms(run_scripted(many(environment(tmp_path, **keys)), Script(backlog_epochs=10 * MANY)))
    assert max(gaps) <= EPOCH_MS if interval is None else all(40 <= gap <= 40 + EPOCH_MS for gap in gaps)


def test_no_checkpoints_during_backlog_and_one_at_its_end(tmp_path):
    run = run_scripted(many(environment(tmp_path, interval_during_backlog=0)), Script(backlog_epochs=19))
    assert carried(run)[0] == 21 and set(gaps_ms(run)) == {EPOCH_MS}


def test_an_interval_during_backlog_below_the_usual_one_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="interval-during-backlog is 5 ms"):
        start_scripted(many(environment(tmp_path, interval_during_backlog="5 ms")))


# ------------------------------------------------------------------------------------------------------------- failing


def test_timeout_drops_a_late_checkpoint_and_its_files(tmp_path):
    env = environment(tmp_path, timeout="25 ms", tolerable_failed_checkpoints=9, data_inline_threshold=0)
    env.get_checkpoint_config().set_externalized_checkpoint_retention(RETAIN)
    cancel = Script(late_snapshots={1: 10}, deeds={30: lambda handle: handle.cancel()})
    run = start_scripted(many(env), cancel)
    assert run.handle.progress().checkpoints_failed == 1
    assert run.handle.progress().restarts == 0
    files = [p for p in tmp_path.rglob("*") if p.is_file()]
    newest = Path(str(run.handle.progress().last_checkpoint_path))
    assert not [p for p in files if p.name.startswith("1-") or p.parent.name == "chk-1"]
    assert resolve(str(newest))[1].checkpoint_id > 1


def test_a_checkpoint_in_time_is_not_dropped(tmp_path):
    env = environment(tmp_path, timeout="10 s")
    assert run_scripted(many(env), Script(late_snapshots={1: 10})).handle.progress().checkpoints_failed == 0


def answers(*outcomes):
    """Return the snapshots to lose so that checkpoints with two answers each fail (F) or succeed (S) as given."""
    return [1 + 2 * n for n, outcome in enumerate(outcomes) if outcome == "F"]


@pytest.mark.parametrize(
    "tolerable, outcomes, restarts",
    [(0, "S F", 1), (1, "F S F S", 0), (1, "F F", 1), (2, "F F S F F", 0), (2, "F F S F F F", 1)],
)
def test_tolerable_failures_are_counted_in_a_row_and_then_the_restart_strategy_decides(
    tmp_path, tolerable, outcomes, restarts
):
    env = environment(tmp_path, restarts=5, tolerable_failed_checkpoints=tolerable)
    run = run_scripted(many(env), Script(failed_snapshots=answers(*outcomes.split())))
    assert len(run.records) == len(set(run.records)) == MANY
    assert run.handle.progress().restarts == restarts


@pytest.mark.parametrize("failures", [1, 2, 3])
def test_the_last_checkpoint_is_taken_again_as_often_as_failures_are_tolerated(tmp_path, failures):
    def run(script):
        env = environment(tmp_path / str(failures), tolerable_failed_checkpoints=2)
        counting(numbers(env)).add_sink(Ledger("last")).uid("ledger")
        return start_scripted(env, script)

    heard = run(Script()).engine.times_passed["snapshot"]  # the last snapshot of all is one of the last checkpoint
    lost = [heard + 2 * n for n in range(failures)]
    again = run(Script(failed_snapshots=lost))
    if failures <= 2:
        assert again.status is JobStatus.FINISHED
        assert Ledger.committed("last") == EXPECTED
    else:
        assert again.status is JobStatus.FAILED
        with pytest.raises(JobExecutionError, match="more than 2 checkpoints in a row failed"):
            again.handle.wait(0)


def test_without_restarts_too_many_failures_end_the_job_naming_the_number_and_the_last_cause(tmp_path):
    env = environment(tmp_path, tolerable_failed_checkpoints=1)
    run = start_scripted(many(env), Script(failed_snapshots=answers("F", "F")))
    assert run.status is JobStatus.FAILED
    with pytest.raises(Exception, match=r"tolerable checkpoint failures: 1.*lost by the script"):
        run.handle.wait(0)


# -------------------------------------------------------------------------------------------------- what they release


@pytest.mark.parametrize("mode", list(CheckpointingMode))
def test_mode(tmp_path, mode):
    """EXACTLY_ONCE holds output back until its checkpoint is complete; AT_LEAST_ONCE does not."""
    ledger, collected, committed = Ledger(mode.name), [], []
    env = environment(tmp_path, interval=1000)
    env.get_checkpoint_config().set_checkpointing_mode(mode)
    stream = counting(numbers(env))
    stream.add_sink(ledger).uid("ledger")

    def look(handle):
        collected.append(handle.results.collected.count)
        committed.append(len(Ledger.committed(mode.name)))

    run = run_scripted(stream, Script(deeds={3: look}))
    assert run.records == EXPECTED and Ledger.committed(mode.name) == EXPECTED
    at_once = mode is CheckpointingMode.AT_LEAST_ONCE
    # The records collected in an epoch are handed over between this epoch and the next.
    assert collected == [6 if at_once else 0] and committed == [9 if at_once else 0]


@pytest.mark.parametrize("mode", list(CheckpointingMode))
def test_mode_after_a_failure(tmp_path, mode):
    ledger = Ledger(f"crash {mode.name}")
    env = environment(tmp_path, interval=1000, restarts=1)
    env.get_checkpoint_config().set_checkpointing_mode(mode)
    counting(numbers(env)).add_sink(ledger).uid("ledger")
    run_scripted(env, Script(crashes=[Crash("after-epoch", 3)]))
    records = [record for records in Ledger.books[ledger.name].values() for record in records]
    assert sorted(set(records)) == sorted(EXPECTED)


# ------------------------------------------------------------------------------------------------- how they are written


class Large(KeyedProcessFunction):
    """Keeps a kilobyte for every key."""

    def open(self, runtime_context):
        self.state = runtime_context.get_state(ValueStateDescriptor("state"))

    def process_element(self, value, ctx):
        yield len(self.state.value() or "")
        self.state.update("x" * 1000)


def large(env):
    """Return a stream of a thousand keys in the first epoch, then the same keys one by one."""
    source = ScriptedSource([[*range(1000), *range(20)]], (1000, *[1] * 20))
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    return stream.key_by(lambda n: n).process(Large()).uid("large")


@pytest.mark.parametrize("incremental", [True, False])
def test_incremental(tmp_path, incremental):
    run = run_scripted(large(environment(tmp_path, incremental=incremental)))
    sizes = [run.engine.bytes_written[n] for n in sorted(run.engine.bytes_written)]
    assert sizes[0] > 900_000
    if incremental:
        assert max(sizes[1:10]) < sizes[0] / 10
    else:
        assert min(sizes[1:-1]) > 900_000


def size_of(directory):
    return sum(p.stat().st_size for p in Path(directory).rglob("*") if p.is_file())


@pytest.mark.parametrize("key", ["execution.checkpointing.snapshot-compression", "execution.snapshot-compression"])
def test_snapshot_compression(tmp_path, key):
    asks = []
    for compressed in ("false", "true"):
        configuration = Configuration()
        configuration.set_string(key, compressed)
        env = environment(tmp_path / "checkpoints", data_inline_threshold=0)
        env.configure(configuration)
        asks.append(Ask(tmp_path / "savepoints", then="stop"))
        run_scripted(large(env), Script(deeds={2: asks[-1]}))
    plain, packed = (size_of(ask.path) for ask in asks)
    assert packed < plain / 10
    for ask in asks:
        again = run_scripted(large(environment()), restore_path=ask.path)
        assert again.records and set(again.records) == {1000}


def test_data_inline_threshold(tmp_path):
    names = {}
    for threshold in (0, 1024 * 1024):
        directory = tmp_path / str(threshold)
        env = environment(directory, data_inline_threshold=threshold)
        env.get_checkpoint_config().set_externalized_checkpoint_retention(RETAIN)
        start_scripted(many(env), Script(deeds={5: lambda handle: handle.cancel()}))
        names[threshold] = {p.name for p in directory.rglob("*") if p.is_file() and p.parent.name != "owner"}
    assert names[1024 * 1024] == {"_metadata"}
    assert len(names[0]) > 1


@pytest.mark.parametrize("way", ["storage", "backend", "keys"])
def test_the_driver_s_memory_with_a_directory_writes_metadata_there_and_nothing_else(tmp_path, way):
    configuration = Configuration()
    if way == "keys":
        configuration.set_string("state.backend", "jobmanager").set_string("state.checkpoints.dir", str(tmp_path))
    env = environment()
    env.configure(configuration)
    env.enable_checkpointing(10)
    env.get_checkpoint_config().set_externalized_checkpoint_retention(RETAIN)
    if way == "storage":
        env.get_checkpoint_config().set_checkpoint_storage(JobManagerCheckpointStorage(str(tmp_path)))
    elif way == "backend":
        env.set_state_backend(MemoryStateBackend(str(tmp_path)))
    run = start_scripted(counting(numbers(env)), Script(deeds={4: lambda handle: handle.cancel()}))
    path = str(run.handle.progress().last_checkpoint_path)
    assert Path(path).parent.parent == tmp_path
    files = [p for p in tmp_path.rglob("*") if p.is_file() and p.parent.name != "owner"]
    assert files == [Path(path, "_metadata")]
    assert 0 < len(run_scripted(counting(numbers(environment())), restore_path=path).records) < len(EXPECTED)


def test_the_driver_s_memory_bounds_a_state_although_it_has_a_directory(tmp_path):
    env = environment()
    env.enable_checkpointing(10)
    env.get_checkpoint_config().set_checkpoint_storage(JobManagerCheckpointStorage(str(tmp_path), max_state_size=1))
    with pytest.raises(JobExecutionError, match=r"driver's memory \(at most 1\)"):
        run_scripted(counting(numbers(env)))


@pytest.mark.parametrize("key", ["pekko.framesize", "akka.framesize"])
def test_the_driver_s_memory_bounds_what_a_subtask_acknowledges(key):
    env = environment()
    env.configure(Configuration().set_string(key, "1b"))
    env.enable_checkpointing(10)
    with pytest.raises(JobExecutionError, match=r"more than the frame size \(at most 1\).*raise pekko.framesize"):
        run_scripted(counting(numbers(env)))


def test_the_driver_s_memory_bounds_a_state_as_a_whole_also_where_files_would_cut_it():
    """A state of 40 MB would be three files, each of them within the bound."""
    env = environment()
    env.enable_checkpointing(10)
    env.get_checkpoint_config().set_checkpoint_storage(JobManagerCheckpointStorage(max_state_size=20 << 20))
    source = ScriptedSource([list(range(40))], [40])
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    large = numbers.map(lambda n: (n, bytes(1 << 20))).key_by(lambda pair: pair[0]).reduce(lambda one, other: one)
    with pytest.raises(JobExecutionError, match=rf"driver's memory \(at most {20 << 20:,}\)"):
        run_scripted(large.map(lambda pair: pair[0]))


def settings_of(env):
    graph = env.job_graph()
    return env.job_settings(graph.name).checkpoints


def test_asynchronous_snapshots_can_be_turned_off(tmp_path):
    """tests/engine shows the effect: the state is written before the epoch is acknowledged."""
    for value, expected in (("true", True), ("false", False)):
        configuration = Configuration()
        configuration.set_string("state.backend.async", value)
        env = environment(tmp_path)
        env.configure(configuration)
        stream = counting(numbers(env))
        run = run_scripted(stream)
        assert run.records == EXPECTED
        assert run.settings.checkpoints.asynchronous is expected


def test_write_buffer_size_is_never_below_the_threshold(tmp_path):
    """tests/storage/test_write_buffer.py shows the effect."""
    for given, threshold, expected in (("64 kb", 0, 65536), ("4 kb", 20480, 20480)):
        env = environment(tmp_path, write_buffer_size=given, data_inline_threshold=threshold)
        counting(numbers(env)).print()
        assert settings_of(env).write_buffer_bytes == expected


@pytest.mark.parametrize("subdir", [True, False])
def test_create_subdir(tmp_path, subdir):
    env = environment(tmp_path, create_subdir=subdir)
    env.get_checkpoint_config().set_externalized_checkpoint_retention(RETAIN)
    run = start_scripted(many(env), Script(deeds={5: lambda handle: handle.cancel()}))
    parent = Path(str(run.handle.progress().last_checkpoint_path)).parent
    assert parent == (tmp_path / str(run.settings.job_id) if subdir else tmp_path)


@pytest.mark.parametrize(
    "keys, writes, reads",
    [
        ({"state.backend.local-recovery": "true"}, True, True),
        ({"execution.checkpointing.local-backup.enabled": "true"}, True, False),
        ({"execution.state-recovery.from-local": "true"}, False, True),
        ({}, False, False),
    ],
)
def test_local_recovery(tmp_path, keys, writes, reads):
    configuration = Configuration()
    for key, value in {**keys, "taskmanager.state.local.root-dirs": str(tmp_path / "local")}.items():
        configuration.set_string(key, value)
    env = environment(tmp_path / "remote", restarts=1, data_inline_threshold=0)
    env.configure(configuration)
    seen = []

    def look(handle):
        seen.extend(p.name for p in (tmp_path / "local").rglob("*") if p.is_file())

    script = Script(deeds={4: look}, crashes=[Crash("after-epoch", 5)])
    run = run_scripted(many(env), script)
    assert len(set(run.records)) == MANY
    assert bool(seen) is writes
    used = [host.local_copies.used for host in run.engine.hosts if host.local_copies is not None]
    assert (sum(used) > 0) is (writes and reads)
    assert not (tmp_path / "local").exists() or not list((tmp_path / "local").iterdir())


# -------------------------------------------------------------------------------------- accepted, with nothing to do


def test_unaligned_checkpoints_are_accepted_and_explained(tmp_path, caplog):
    with caplog.at_level(logging.INFO):
        env = environment(tmp_path)
        env.get_checkpoint_config().enable_unaligned_checkpoints()
        assert run_scripted(counting(numbers(env))).records == EXPECTED
    assert "has unaligned checkpoints enabled but runs in epochs" in caplog.text


def test_ignoring_in_flight_data_is_accepted_and_explained(tmp_path, caplog):
    ask = Ask(tmp_path / "savepoints", then="stop")
    run_scripted(counting(numbers(environment(tmp_path / "one"))), Script(deeds={3: ask}))
    env = environment(tmp_path / "two")
    env.get_checkpoint_config().set_checkpoint_id_of_ignored_in_flight_data(resolve(ask.path)[1].checkpoint_id)
    with caplog.at_level(logging.INFO):
        assert run_scripted(counting(numbers(env)), restore_path=ask.path).records == EXPECTED[9:]
    assert "holds no records in flight" in caplog.text


@pytest.mark.parametrize("force", [False, True])
def test_a_job_with_a_loop_needs_no_force_and_loses_nothing(tmp_path, force):
    """The records that are still in the iteration are part of the checkpoint."""

    def program(directory):
        env = environment(directory, restarts=1)
        env.enable_checkpointing(10, force=force)
        loop = numbers(env, count=10).iterate(1)
        less = loop.map(lambda n: n - 3).uid("less").rebalance().map(lambda n: n).uid("same")
        loop.close_with(less.filter(lambda n: n > 0).uid("on"))
        return less.filter(lambda n: n <= 0).uid("out")

    expected = sorted(-((3 - n % 3) % 3) if n else -3 for n in range(10))
    whole = run_scripted(program(tmp_path / "one"), Script(crashes=[Crash("after-epoch", 4)]))
    assert sorted(whole.records) == expected
    ask = Ask(tmp_path / "savepoints", then="stop")
    first = run_scripted(program(tmp_path / "two"), Script(deeds={3: ask}))
    second = run_scripted(program(tmp_path / "three"), restore_path=ask.path)
    assert sorted(first.records + second.records) == expected


# --------------------------------------------------------------------------------------------------------------- BATCH


def in_batch(directory, **more):
    env = environment(directory, **more)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    return counting(numbers(env))


def test_a_batch_job_takes_no_checkpoints_and_begins_anew_after_a_failure(tmp_path):
    run = run_scripted(in_batch(tmp_path, restarts=1), Script(crashes=[Crash("after-epoch", 4)]))
    assert sorted(run.records) == sorted(EXPECTED)
    assert all(order.checkpoint_id is None for order in run.epochs)
    assert run.engine.restored_ids == [None, None] and not list(tmp_path.iterdir())


def test_a_batch_job_does_not_start_from_a_savepoint(tmp_path):
    with pytest.raises(ConfigurationError, match="BATCH mode"):
        start_scripted(in_batch(tmp_path), restore_path=str(tmp_path))


# ------------------------------------------------------------------------------------------------------ finished tasks


def unequal(env):
    """Return a stream of two splits, one of which ends after two epochs."""
    source = ScriptedSource([[0, 2], list(range(1, 20, 2))], (1,))
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")


@pytest.mark.parametrize("on", [True, False])
def test_checkpoints_after_tasks_finish(tmp_path, on):
    env = environment(tmp_path, parallelism=2, checkpoints_after_tasks_finish=on)
    run = run_scripted(counting(unequal(env)))
    assert sorted(run.records) == [(0, 1), (0, 2)] + [(1, n) for n in range(1, 11)]
    completed = run.handle.progress().checkpoints_completed
    assert completed > 5 if on else completed <= 2


def test_a_finished_task_keeps_its_place_in_later_checkpoints(tmp_path):
    env = environment(tmp_path, parallelism=2)
    env.get_checkpoint_config().set_externalized_checkpoint_retention(RETAIN)
    run = start_scripted(counting(unequal(env)), Script(deeds={8: lambda handle: handle.cancel()}))
    path = str(run.handle.progress().last_checkpoint_path)
    (source,) = [o for o in resolve(path)[1].operators if o.uid == "numbers"]
    assert source.finished == (True, False) and source.parallelism == 2
    again = run_scripted(counting(unequal(environment(tmp_path, parallelism=2))), restore_path=path)
    assert all(key == 1 for key, _ in again.records), "the finished one reads nothing again"


class Union(MapFunction, CheckpointedFunction):
    """Keeps what each subtask has seen in union state; after a restore every subtask has all of it."""

    restored = {}

    def __init__(self, name):
        self.name = name

    def initialize_state(self, context):
        self.state = context.get_operator_state_store().get_union_list_state(ListStateDescriptor("seen"))
        self.seen = []
        if context.is_restored():
            Union.restored.setdefault(self.name, []).append(sorted(self.state.get()))

    def snapshot_state(self, context):
        self.state.update(list(self.seen))

    def map(self, value):
        self.seen.append(value)
        return value


@pytest.mark.parametrize("parallelism", [2, 1, 3])
def test_union_state_of_an_operator_that_has_half_finished_is_not_lost(tmp_path, parallelism):
    name = f"union {parallelism}"
    env = environment(tmp_path, parallelism=2)
    env.get_checkpoint_config().set_externalized_checkpoint_retention(RETAIN)
    stop = Script(deeds={9: lambda handle: handle.cancel()})
    run = start_scripted(unequal(env).map(Union(name)).uid("union"), stop)
    # Checkpoints were taken long after the first subtask had finished, and hold what it saw.
    assert (run.handle.progress().last_checkpoint_id or 0) >= 6
    env = environment(tmp_path, parallelism=parallelism)
    path = str(run.handle.progress().last_checkpoint_path)
    run_scripted(unequal(env).map(Union(name)).uid("union"), restore_path=path)
    assert Union.restored[name] == [Union.restored[name][0]] * parallelism
    assert {0, 2} <= set(Union.restored[name][0]) and len(Union.restored[name][0]) >= 8


def test_union_state_of_an_operator_restored_half_finished_is_not_lost_by_the_next_checkpoint(tmp_path):
    def program(name):
        env = environment(tmp_path, parallelism=2)
        env.get_checkpoint_config().set_externalized_checkpoint_retention(RETAIN)
        return unequal(env).map(Union(name)).uid("union")

    class_cancel = {6: lambda handle: handle.cancel()}
    first = start_scripted(program("first"), Script(deeds=class_cancel))
    second = start_scripted(
        program("second"),
        Script(deeds={3: lambda handle: handle.cancel()}),
        restore_path=first.handle.progress().last_checkpoint_path,
    )
    path = second.handle.progress().last_checkpoint_path
    (union,) = [o for o in resolve(path)[1].operators if o.uid == "union"]  # type: ignore[arg-type]
    assert all(part is not None for part in union.subtasks), "also the finished one was asked"


# ----------------------------------------------------------------------------------------------- by configuration file


def test_every_option_may_stand_in_the_configuration_file(tmp_path, monkeypatch):
    (tmp_path / "config.yaml").write_text(
        f"""
execution:
  checkpointing:
    interval: 20 ms
    dir: {tmp_path / "checkpoints"}
    num-retained: 3
    externalized-checkpoint-retention: RETAIN_ON_CANCELLATION
    savepoint-dir: {tmp_path / "savepoints"}
    mode: AT_LEAST_ONCE
    min-pause: 5 ms
    timeout: 1 min
    tolerable-failed-checkpoints: 4
    snapshot-compression: true
    incremental: false
restart-strategy:
  type: fixed-delay
  fixed-delay:
    attempts: 2
    delay: 0 ms
"""
    )
    monkeypatch.setenv("EKORN_CONF_DIR", str(tmp_path))
    env = StreamExecutionEnvironment.get_execution_environment()
    script = Script(deeds={30: lambda handle: handle.cancel()}, crashes=[Crash("after-epoch", 9)])
    run = start_scripted(counting(numbers(env, count=MANY, runs=(1,))), script)
    assert run.status is JobStatus.CANCELED and run.handle.progress().restarts == 1
    job = tmp_path / "checkpoints" / str(run.settings.job_id)
    assert len([p for p in job.iterdir() if p.name.startswith("chk-")]) >= 3
    settings = run.settings.checkpoints
    assert (settings.mode, settings.min_pause_ms, settings.timeout_ms) == (CheckpointingMode.AT_LEAST_ONCE, 5, 60_000)
    assert (settings.tolerable_failures, settings.compression, settings.incremental) == (4, True, False)
    assert run.settings.savepoint_directory == str(tmp_path / "savepoints")


def test_the_restart_strategy_of_the_configuration_file_is_what_a_job_falls_back_to(tmp_path, monkeypatch):
    from ekorn.common import RestartStrategies

    (tmp_path / "config.yaml").write_text(
        "restart-strategy.type: fixed-delay\nrestart-strategy.fixed-delay.attempts: 2\n"
        "restart-strategy.fixed-delay.delay: 0 ms\n"
    )
    monkeypatch.setenv("EKORN_CONF_DIR", str(tmp_path))
    crashes = Script(crashes=[Crash("after-epoch", n) for n in (1, 2, 3)])
    for wish, restarts in (
        (None, 2),
        (RestartStrategies.fall_back_restart(), 2),
        (RestartStrategies.no_restart(), 0),
        (RestartStrategies.fixed_delay_restart(1, 0), 1),
        (RestartStrategies.fixed_delay_restart(3, 0), 3),
    ):
        env = StreamExecutionEnvironment.get_execution_environment()
        if wish is not None:
            env.set_restart_strategy(wish)
        run = start_scripted(counting(numbers(env)), crashes)
        assert run.handle.progress().restarts == restarts
        assert run.status is (JobStatus.FINISHED if restarts == 3 else JobStatus.FAILED)
