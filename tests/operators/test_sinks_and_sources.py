"""Two-phase sinks, writers and source functions: the order of their calls, and their records."""

import threading

import pytest

from ekorn.common import Configuration, RestartStrategies, Types, WatermarkStrategy
from ekorn.common.watermark_strategy import Watermark
from ekorn.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from ekorn.datastream.functions import KeyedProcessFunction, MapFunction, ProcessFunction
from ekorn.errors import JobExecutionError
from ekorn.functions.sink_contract import Committer, Sink, SinkFunction, SinkWriter, TwoPhaseCommitSinkFunction
from ekorn.functions.source_contract import (
    Batch,
    Boundedness,
    ParallelSourceFunction,
    Source,
    SourceFunction,
    Split,
    SplitReader,
)
from ekorn.testing.local_run import collect_locally, on_local_engine
from ekorn.testing.scripted import Crash, Script, ScriptedSource, run_scripted
from ekorn.types.time_bounds import MAX_TIMESTAMP, MIN_TIMESTAMP
from tests.live_jobs import until

LOG = []


@pytest.fixture
def env():
    LOG.clear()
    return StreamExecutionEnvironment.get_execution_environment()


def checkpointed(env):
    env.enable_checkpointing(10)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(5, 0))
    return env


def scripted(env, count, runs):
    return env.from_source(ScriptedSource([range(count)], runs), WatermarkStrategy.no_watermarks(), "source")


class Traced(TwoPhaseCommitSinkFunction):
    def open(self, runtime_context):
        self.attempt = runtime_context.get_attempt_number()
        self.begun = 0

    def begin_transaction(self):
        self.begun += 1
        LOG.append(f"begin {self.attempt}.{self.begun}")
        return f"{self.attempt}.{self.begun}"

    def invoke(self, transaction, value, context):  # type: ignore[override]
        LOG.append(f"write {value} in {transaction}")

    def pre_commit(self, transaction):
        LOG.append(f"prepare {transaction}")

    def commit(self, transaction):
        LOG.append(f"commit {transaction}")

    def abort(self, transaction):
        LOG.append(f"abort {transaction}")

    def finish(self):
        LOG.append("finish")


def test_a_two_phase_sink_prepares_with_the_checkpoint_and_commits_when_it_is_complete(env):
    scripted(checkpointed(env), 3, [1]).add_sink(Traced())
    run_scripted(env)
    assert LOG == [
        "begin 0.1", "write 0 in 0.1", "write 1 in 0.1", "prepare 0.1", "begin 0.2", "commit 0.1",
        "write 2 in 0.2", "finish", "prepare 0.2", "commit 0.2",
    ]  # fmt: skip


def test_after_a_failure_what_was_prepared_is_committed_and_what_was_open_is_aborted(env):
    scripted(checkpointed(env), 4, [1]).add_sink(Traced())
    run_scripted(env, Script(crashes=[Crash("before-notify", 1)]))
    restart = LOG.index("begin 1.1")
    assert LOG[:restart] == [
        "begin 0.1", "write 0 in 0.1", "write 1 in 0.1", "prepare 0.1", "begin 0.2",
        "commit 0.1", "abort 0.2",  # found in the checkpoint
    ]  # fmt: skip
    assert "write 2 in 1.1" in LOG
    assert next(line for line in LOG if line.startswith("commit")) == "commit 0.1"


@pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH])
def test_without_checkpoints_everything_is_committed_at_the_end(env, mode):
    env.set_runtime_mode(mode)
    scripted(env, 2, [1]).add_sink(Traced())
    run_scripted(env)
    assert LOG == ["begin 0.1", "write 0 in 0.1", "write 1 in 0.1", "finish", "prepare 0.1", "commit 0.1"]


class TracedWriter(SinkWriter, Sink, Committer):
    def create_writer(self, context, restored):
        LOG.append(f"writer {context.subtask_index}/{context.subtask_count} {list(restored)}")
        self.held, self.written = [], sum(restored)
        return self

    def create_committer(self):
        return self

    def write(self, value, timestamp):
        self.held.append(value)
        self.written += 1

    def prepare_commit(self):
        held, self.held = self.held, []
        return [tuple(held)] if held else []

    def snapshot_state(self):
        return [self.written]

    def commit(self, committables):
        LOG.append(f"commit {list(committables)}")

    def finish(self):
        LOG.append("finish")

    def close(self):
        LOG.append("close")


def test_a_writer_s_output_is_committed_with_its_checkpoint_and_its_state_restored(env):
    scripted(checkpointed(env), 5, [1]).sink_to(TracedWriter())
    run_scripted(env, Script(crashes=[Crash("after-epoch", 3)], kill=False))
    restored = LOG.index("writer 0/1 [2]")
    assert LOG[:restored] == ["writer 0/1 []", "commit [(0, 1)]", "close", "commit [(0, 1)]"]
    committed = {line for line in LOG if line.startswith("commit")}
    assert len(committed) > 1 and LOG[-1] == "close" and LOG.count("finish") == 1


def test_a_writer_without_checkpoints_commits_at_the_end(env):
    scripted(env, 3, [1]).sink_to(TracedWriter())
    run_scripted(env)
    assert LOG == ["writer 0/1 []", "finish", "commit [(0, 1, 2)]", "close"]


class Apart(TracedWriter):
    """Has a committer of its own."""

    def __init__(self, fails=False):
        self._fails = fails

    def create_committer(self):
        return TracedCommitter()

    def close(self):
        super().close()
        if self._fails:
            raise OSError("cannot close")


class TracedCommitter(Committer):
    def commit(self, committables):
        LOG.append(f"commit {list(committables)}")

    def close(self):
        LOG.append("close the committer")


def test_a_committer_is_closed_once_after_its_writer_in_every_attempt(env):
    scripted(checkpointed(env), 5, [1]).sink_to(Apart())
    run_scripted(env, Script(crashes=[Crash("after-epoch", 3)], kill=False))
    closed = [line for line in LOG if line.startswith("close")]
    assert closed == ["close", "close the committer"] * 2 and LOG[-1] == "close the committer"


def test_a_committer_is_closed_also_if_its_writer_cannot_be(env):
    scripted(env, 3, [1]).sink_to(Apart(fails=True))
    with pytest.raises(JobExecutionError, match="cannot close"):
        run_scripted(env)
    assert LOG[-2:] == ["close", "close the committer"]


class Timed(SinkFunction):
    def invoke(self, value, context):
        LOG.append((value, context.timestamp(), context.current_watermark()))


class Emits(SourceFunction):
    """Runs the script that it was given."""

    def __init__(self, *steps):
        self.steps = steps

    def run(self, ctx):
        for step, *arguments in self.steps:
            getattr(ctx, step)(*arguments)

    def cancel(self):
        pass


def test_a_source_function_s_timestamps_and_watermarks_keep_their_places(env):
    source = Emits(
        ("collect_with_timestamp", "a", 5), ("emit_watermark", Watermark(4)), ("collect", "b"),
        ("collect_with_timestamp", "c", 9), ("emit_watermark", Watermark(3)), ("collect_with_timestamp", "d", 2),
        ("emit_watermark", Watermark(8)), ("collect", "e"),
    )  # fmt: skip
    env.add_source(source).rebalance().map(lambda v: v).add_sink(Timed())
    with on_local_engine():
        env.execute()
    assert LOG == [("a", 5, MIN_TIMESTAMP), ("b", None, 4), ("c", 9, 4), ("d", 2, 4), ("e", None, 8)]


class Last(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timer_service().current_watermark()


@pytest.mark.parametrize("ending", [(), (("emit_watermark", Watermark(30)), ("collect", "late"))])
def test_a_source_that_was_idle_holds_nothing_back_and_counts_again_when_it_speaks(env, ending):
    idle = Emits(("collect", "first"), ("mark_as_temporarily_idle",), *ending)
    busy = Emits(("emit_watermark", Watermark(20)), ("collect", "busy"), ("emit_watermark", Watermark(40)))
    stream = env.add_source(idle).union(env.add_source(busy)).process(Last())
    found = dict(collect_locally(stream))
    assert set(found) == {"first", "busy"} | ({"late"} if ending else set())


def test_an_error_in_run_fails_the_job_also_right_at_the_end(env):
    class Fails(Emits):
        def run(self, ctx):
            super().run(ctx)
            raise ValueError("at the end")

    for count in range(5):
        with pytest.raises(JobExecutionError, match="at the end") as caught:
            collect_locally(env.add_source(Fails(*[("collect", n) for n in range(count)]), "failing"))
        assert "failing" in str(caught.value.operator_name)


def test_more_than_the_buffer_holds_is_handed_over_while_the_lock_is_held(env):
    class Greedy(SourceFunction):
        def run(self, ctx):
            with ctx.get_checkpoint_lock():
                for n in range(120_000):
                    ctx.collect(n)

        def cancel(self):
            pass

    checkpointed(env)
    run = run_scripted(env.add_source(Greedy()).filter(lambda n: n % 1000 == 0))
    assert run.records == list(range(0, 120_000, 1000))


class Spread(ParallelSourceFunction):
    def open(self, runtime_context):
        self.subtask = runtime_context.get_index_of_this_subtask()

    def run(self, ctx):
        ctx.collect(self.subtask)

    def cancel(self):
        pass


def test_a_parallel_source_function_runs_once_in_every_subtask(env):
    env.set_parallelism(3)
    assert sorted(collect_locally(env.add_source(Spread()))) == [0, 1, 2]


def test_threads_of_source_functions_and_snapshots_end_with_the_job(env):
    before = set(threading.enumerate())
    run_scripted(checkpointed(env).add_source(Emits(("collect", 1))).map(lambda v: v))
    until(lambda: set(threading.enumerate()) <= before)


# ------------------------------------------------------------------------------------------------------- discovery


FILES = []  # the files of the source; grows while the job runs


class Watching(Source):
    """Discovers splits in every epoch; a split ends with its first record."""

    boundedness = Boundedness.CONTINUOUS_UNBOUNDED
    discovery_interval_ms = 1

    def discover_splits(self, parallelism):
        return [Split(name) for name in sorted(FILES)]

    def create_reader(self, split, position):
        return OneRecord(split.id, position)


class OneRecord(SplitReader):
    def __init__(self, name, position):
        self.name, self.at = name, position or 0

    def read(self, max_records):
        values, self.at = [self.name][self.at :], 1
        return Batch(values)

    def position(self):
        return self.at

    @property
    def finished(self):
        return self.at > 0


class AddsFiles(MapFunction):
    """New files appear before and between the old ones, while subtasks discover at different times."""

    def map(self, value):
        LOG.append(value)
        number = int(value[1:])
        if number < 40:
            FILES.extend({f"f{number * 7 % 41:02}", f"f{number + 1:02}"} - set(FILES))
        if len(set(LOG)) > 35:
            raise EOFError
        return value


def test_splits_found_while_the_job_runs_are_each_read_once(env):
    FILES[:] = ["f01"]
    env.set_parallelism(3)
    stream = env.from_source(Watching(), WatermarkStrategy.no_watermarks(), "watching").map(AddsFiles())
    with pytest.raises(JobExecutionError, match="EOFError"):
        collect_locally(stream)
    assert len(LOG) == len(set(LOG))


class Forgetting(Watching):
    """A source that need not remember splits that are gone."""

    forgets_vanished_splits = True


class Replaces(MapFunction):
    """Takes every file away once it is read, and puts a new one under the same name later."""

    def map(self, value):
        LOG.append(value)
        FILES[:] = ["f02"] if value == "f01" else ["f01"]
        if len(LOG) == 6:
            raise EOFError
        return value


def test_a_split_that_vanished_is_forgotten_and_its_id_may_be_used_again(env):
    LOG.clear()
    FILES[:] = ["f01"]
    stream = env.from_source(Forgetting(), WatermarkStrategy.no_watermarks(), "watching").map(Replaces())
    with pytest.raises(JobExecutionError, match="EOFError"):
        collect_locally(stream)
    assert LOG == ["f01", "f02"] * 3


# ------------------------------------------------------------------------------------------------------ BATCH mode


class Keys(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield ctx.get_current_key(), value[1], ctx.timestamp()


@pytest.mark.parametrize("in_memory", [1, 3, 500_000], ids=lambda n: f"{n} in memory")
def test_batch_gives_key_by_key_in_order_of_time_also_when_it_spills(env, in_memory):
    env.configure(Configuration().set_string("ekorn.batch.records-in-memory", str(in_memory)))
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)

    from ekorn.common.watermark_strategy import TimestampAssigner

    class ByField(TimestampAssigner):
        def extract_timestamp(self, value, record_timestamp):
            return value[1]

    records = [("b", 3), ("a", 9), ("b", 1), ("a", 2), ("c", 5), ("a", 2)]
    stamped = env.from_collection(records).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ByField())
    )
    found = collect_locally(stamped.key_by(lambda v: v[0], Types.STRING()).process(Keys()))
    assert found == [("a", 2, 2), ("a", 2, 2), ("a", 9, 9), ("b", 1, 1), ("b", 3, 3), ("c", 5, 5)]


@pytest.mark.parametrize("in_memory", [2, 500_000])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_batch_gives_the_last_result_of_every_key_once(env, in_memory, parallelism):
    env.configure(Configuration().set_string("ekorn.batch.records-in-memory", str(in_memory)))
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.set_parallelism(parallelism)
    words = env.from_collection([(n * n % 7, 1) for n in range(50)]).rebalance().map(lambda v: v)
    counts = words.key_by(lambda v: v[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
    assert sorted(collect_locally(counts)) == [(0, 8), (1, 14), (2, 14), (4, 14)]


def test_batch_results_carry_the_last_timestamp(env):
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.from_collection([1, 2]).key_by(lambda v: 0).sum().add_sink(Timed())
    with on_local_engine():
        env.execute()
    assert [(value, time) for value, time, _ in LOG] == [(3, MAX_TIMESTAMP)]
