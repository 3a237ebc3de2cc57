"""The calls of user functions: Flink's order, tail first; the content of contexts; what functions share."""

import os

import pytest

from ekorn.common import RestartStrategies, WatermarkStrategy
from ekorn.common.accumulators import AverageAccumulator, DoubleCounter, Histogram, IntCounter, ListAccumulator
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.functions import KeyedProcessFunction, MapFunction
from ekorn.datastream.state import ListStateDescriptor, ValueStateDescriptor
from ekorn.errors import JobExecutionError, NoCurrentKey
from ekorn.functions.sink_contract import SinkFunction
from ekorn.functions.state.checkpointed import CheckpointedFunction, CheckpointListener, ListCheckpointed
from ekorn.testing.local_run import collect_locally, on_local_engine
from ekorn.testing.scripted import Crash, Script, ScriptedSource, run_scripted

LOG = []


@pytest.fixture
def env():
    LOG.clear()
    return StreamExecutionEnvironment.get_execution_environment()


class Traced(MapFunction, CheckpointedFunction, CheckpointListener):
    def __init__(self, name):
        self.name = name

    def note(self, what):
        LOG.append(f"{what} {self.name}")

    def initialize_state(self, context):
        self.note(f"initialize({context.is_restored()}, {context.get_restored_checkpoint_id()})")

    def open(self, runtime_context):
        self.note(f"open#{runtime_context.get_attempt_number()}")

    def map(self, value):
        self.note(f"map({value})")
        return value

    def snapshot_state(self, context):
        self.note(f"snapshot({context.get_checkpoint_id()})")

    def notify_checkpoint_complete(self, checkpoint_id):
        self.note(f"complete({checkpoint_id})")

    def notify_checkpoint_aborted(self, checkpoint_id):
        self.note(f"aborted({checkpoint_id})")

    def close(self):
        self.note("close")


class TracedSink(SinkFunction):
    def invoke(self, value, context):
        LOG.append(f"invoke({value}) sink")

    def finish(self):
        LOG.append("finish sink")

    def close(self):
        LOG.append("close sink")


def traced(env, runs=(1,), count=2):
    env.enable_checkpointing(10)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 0))
    source = env.from_source(ScriptedSource([range(count)], runs), WatermarkStrategy.no_watermarks(), "source")
    source.map(Traced("A")).map(Traced("B")).add_sink(TracedSink())
    return env


def test_the_order_of_calls_is_flink_s(env):
    run_scripted(traced(env))
    assert LOG == [
        "initialize(False, None) B", "open#0 B",
        "initialize(False, None) A", "open#0 A",
        "map(0) A", "map(0) B", "invoke(0) sink",
        "map(1) A", "map(1) B", "invoke(1) sink", "finish sink",
        "snapshot(1) B", "snapshot(1) A", "complete(1) B", "complete(1) A",
        "complete(2) B", "complete(2) A",
        "close sink", "close B", "close A",
    ]  # fmt: skip


def test_after_a_failure_new_instances_are_restored_and_nothing_is_finished_twice(env):
    run_scripted(traced(env, count=4), Script(crashes=[Crash("after-epoch", 3)], kill=False))
    start = LOG.index("initialize(True, 1) B")
    before, after = LOG[:start], LOG[start:]
    assert before[-3:] == ["close sink", "close B", "close A"]
    assert "finish sink" not in before
    assert after[:4] == ["initialize(True, 1) B", "open#1 B", "initialize(True, 1) A", "open#1 A"]
    assert [line for line in after if line.startswith("invoke")] == ["invoke(2) sink", "invoke(3) sink"]
    assert after.count("finish sink") == 1


def test_a_checkpoint_that_is_given_up_is_told_tail_first_and_its_number_not_used_again(env):
    traced(env, count=5)
    env.get_checkpoint_config().set_tolerable_checkpoint_failure_number(5)
    run_scripted(env, Script(failed_snapshots=[1]))
    assert LOG.index("aborted(1) B") + 1 == LOG.index("aborted(1) A")
    assert "complete(1) A" not in LOG
    assert LOG.index("snapshot(2) B") > LOG.index("aborted(1) A")


class Remembers(MapFunction, ListCheckpointed):
    restored = []

    def __init__(self):
        self.seen = []

    def map(self, value):
        self.seen.append(value)
        return value

    def snapshot_state(self, checkpoint_id, timestamp):
        return self.seen

    def restore_state(self, state):
        type(self).restored.append(list(state))
        self.seen = list(state)


def test_list_checkpointed_is_restored_only_after_a_failure(env):
    Remembers.restored.clear()
    env.enable_checkpointing(10)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 0))
    source = env.from_source(ScriptedSource([range(9)], [2]), WatermarkStrategy.no_watermarks(), "source")
    run_scripted(source.map(Remembers()), Script(crashes=[Crash("after-epoch", 4)]))
    assert Remembers.restored == [[0, 1, 2, 3, 4, 5]]


class Facts(MapFunction):
    def open(self, runtime_context):
        self.facts = (
            runtime_context.get_task_name_with_subtasks(),
            runtime_context.get_number_of_parallel_subtasks(),
            runtime_context.get_max_number_of_parallel_subtasks(),
            runtime_context.get_index_of_this_subtask(),
            runtime_context.get_attempt_number(),
            runtime_context.get_job_parameter("colour", "none"),
            runtime_context.get_job_parameter("size", "none"),
            len(str(runtime_context.get_job_id())),
        )

    def map(self, value):
        return self.facts


def test_the_runtime_context_knows_where_it_is(env):
    env.set_parallelism(2)
    env.set_max_parallelism(10)
    env.get_config().set_global_job_parameters({"colour": "blue"})
    stream = env.from_collection([0, 1]).rebalance().map(Facts()).name("facts").rebalance().map(lambda f: f)
    assert sorted(collect_locally(stream)) == [
        (f"facts ({index + 1}/2)", 2, 10, index, 0, "blue", "none", 32) for index in (0, 1)
    ]


class Accumulates(MapFunction):
    def open(self, runtime_context):
        self.counter = runtime_context.get_int_counter("records")
        self.histogram = runtime_context.get_histogram("sizes")
        self.average, self.all, self.sum = AverageAccumulator(), ListAccumulator(), DoubleCounter()
        runtime_context.add_accumulator("average", self.average)
        runtime_context.add_accumulator("all", self.all)
        runtime_context.add_accumulator("sum", self.sum)

    def map(self, value):
        self.counter.add(1)
        self.histogram.add(value % 2)
        self.average.add(value)
        self.all.add(value)
        self.sum.add(value / 2)
        return value


@pytest.mark.parametrize("parallelism", [1, 3])
def test_accumulators_of_every_kind_come_with_the_result(env, parallelism, capsys):
    env.set_parallelism(parallelism)
    env.from_collection(range(6)).rebalance().map(Accumulates()).print()
    with on_local_engine():
        result = env.execute()
    assert result.get_accumulator_result("records") == 6
    assert result.get_accumulator_result("sizes") == {0: 3, 1: 3}
    assert result.get_accumulator_result("average") == 2.5
    assert sorted(result.get_accumulator_result("all")) == [0, 1, 2, 3, 4, 5]
    assert result.get_accumulator_result("sum") == 7.5


@pytest.mark.parametrize("ask", [
    lambda c: (c.add_accumulator("n", IntCounter()), c.add_accumulator("n", IntCounter())),
    lambda c: (c.add_accumulator("n", Histogram()), c.get_int_counter("n")),
    lambda c: c.get_accumulator("n"),
])  # fmt: skip
def test_an_accumulator_asked_for_in_the_wrong_way_is_refused_by_name(env, ask):
    class Asks(MapFunction):
        def open(self, runtime_context):
            ask(runtime_context)

        def map(self, value):
            return value

    with pytest.raises(JobExecutionError, match="accumulator 'n'"):
        collect_locally(env.from_collection([1]).map(Asks()))


class Reads(MapFunction):
    def __init__(self, name):
        self.name = name

    def open(self, runtime_context):
        self.path = runtime_context.get_distributed_cache().get_file(self.name)

    def map(self, value):
        if os.path.isdir(self.path):
            return sorted(os.listdir(self.path))
        with open(self.path) as file:
            return file.read(), os.access(self.path, os.X_OK), self.path


def test_a_cached_file_is_copied_once_and_gone_with_the_job(env, tmp_path):
    (tmp_path / "file").write_text("content")
    env.register_cached_file(str(tmp_path / "file"), "mine", executable=True)
    ((content, executable, path),) = collect_locally(env.from_collection([1]).map(Reads("mine")))
    assert (content, executable) == ("content", True)
    assert path != str(tmp_path / "file")
    assert not os.path.exists(path)


def test_a_cached_folder_is_copied_whole_and_an_unknown_name_refused(env, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    env.register_cached_file(str(tmp_path), "folder")
    assert collect_locally(env.from_collection([1]).map(Reads("folder"))) == [["a", "b"]]
    env.register_cached_file(str(tmp_path), "folder2")
    with pytest.raises(JobExecutionError, match=r"no cached file is registered as 'other'; registered: 'folder"):
        collect_locally(env.from_collection([1]).map(Reads("other")))


# ------------------------------------------------------------------------------------- state, folds and with-state


def test_the_seeds_count_window_average(env):
    class Average(KeyedProcessFunction):
        def open(self, runtime_context):
            self.sum = runtime_context.get_state(ValueStateDescriptor("average", None, (0, 0)))

        def process_element(self, value, ctx):
            count, total = self.sum.value()
            self.sum.update((count + 1, total + value[1]))
            if count + 1 >= 2:
                yield value[0], (total + value[1]) // 2
                self.sum.clear()

    stream = env.from_collection([(1, 3), (1, 5), (1, 7), (1, 4), (1, 2)])
    assert collect_locally(stream.key_by(lambda v: v[0]).process(Average())) == [(1, 4), (1, 5)]


def test_the_with_state_family_gives_what_the_reference_says(env):
    def keyed():
        return env.from_collection([("a", 3), ("b", 1), ("a", 4), ("a", 5)]).key_by(lambda v: v[0])

    running = keyed().map_with_state(lambda v, c: ((v[0], c or 0), (c or 0) + v[1]))
    assert collect_locally(running) == [("a", 0), ("b", 0), ("a", 3), ("a", 7)]
    first = keyed().filter_with_state(lambda v, seen: (seen is None, True))
    assert collect_locally(first) == [("a", 3), ("b", 1)]
    cleared = keyed().flat_map_with_state(lambda v, s: ([v[1], s], None if s else v[1]))
    assert collect_locally(cleared) == [3, None, 1, None, 4, 3, 5, None]
    nothing = keyed().flat_map_with_state(lambda v, s: (None, None))
    assert collect_locally(nothing) == []


def test_a_fold_starts_every_key_from_a_copy_of_its_initial_value(env):
    def fold(acc, value):
        acc["seen"].append(value[1])
        return acc

    stream = env.from_collection([("a", 1), ("b", 2), ("a", 3)]).key_by(lambda v: v[0]).fold({"seen": []}, fold)
    assert [v["seen"] for v in collect_locally(stream)] == [[1], [2], [1, 3]]


def test_a_result_kept_in_state_is_not_changed_through_the_emitted_record(env):
    def spoil(value):
        value.append("spoiled")
        return tuple(value)

    stream = env.from_collection([["a"], ["a"], ["a"]]).key_by(lambda v: v[0]).reduce(lambda a, b: a + b)
    found = collect_locally(stream.map(spoil))
    assert found == [("a", "spoiled"), ("a", "a", "spoiled"), ("a", "a", "a", "spoiled")]


def test_keyed_state_can_be_asked_for_in_initialize_state(env):
    class Count(MapFunction, CheckpointedFunction):
        def initialize_state(self, context):
            self.count = context.get_keyed_state_store().get_state(ValueStateDescriptor("count", None, 0))
            self.names = context.get_operator_state_store().get_list_state(ListStateDescriptor("names"))

        def snapshot_state(self, context):
            pass

        def map(self, value):
            self.count.update(self.count.value() + 1)
            return value, self.count.value()

    stream = env.from_collection(["a", "b", "a"]).key_by(lambda v: v).map(Count())
    assert collect_locally(stream) == [("a", 1), ("b", 1), ("a", 2)]


class UsesStateAlways(KeyedProcessFunction):
    """Records where its state can be used."""

    def use(self, where):
        try:
            self.state.value()
            self.state.clear()
        except NoCurrentKey:
            LOG.append(f"not in {where}")
        else:
            LOG.append(f"in {where}")

    def open(self, runtime_context):
        self.state = runtime_context.get_state(ValueStateDescriptor("state"))
        self.use("open")

    def process_element(self, value, ctx):
        self.use("process_element")

    def close(self):
        self.use("close")


def test_keyed_state_can_be_used_while_a_record_is_processed_and_not_before_or_after(env):
    env.set_parallelism(1)
    collect_locally(env.from_collection([1, 2]).key_by(lambda v: v).process(UsesStateAlways()))
    assert LOG == ["not in open", "in process_element", "in process_element", "not in close"]
