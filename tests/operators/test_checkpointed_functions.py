"""Functions that take part in checkpoints, in whole jobs: notifications, and restored state, also rescaled."""

from collections import Counter

import pytest

from ekorn.common import RestartStrategies, Types, WatermarkStrategy
from ekorn.datastream import (
    CheckpointedFunction,
    CheckpointListener,
    ListCheckpointed,
)
from ekorn.datastream.functions import KeyedProcessFunction, MapFunction, ReduceFunction, SinkFunction, WindowFunction
from ekorn.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from ekorn.datastream.window import CountTumblingWindowAssigner
from ekorn.errors import InvalidProgramError, JobExecutionError, StateNotKeyed
from ekorn.testing.scripted import (
    Crash,
    Script,
    ScriptedSource,
    run_scripted,
    start_scripted,
)
from tests.operators.interrupted_jobs import environment, interrupted, numbers

LOG = []


@pytest.fixture(autouse=True)
def clean_log():
    LOG.clear()


class Keeps(MapFunction, CheckpointedFunction):
    """Keeps all its records: in a split list, in a union list, and in a broadcast map."""

    def open(self, runtime_context):
        self.index = runtime_context.get_index_of_this_subtask()
        self.seen = list(self.split.get())
        LOG.append((self.restored, self.index, sorted(self.seen), sorted(self.union.get()), dict(self.rules.items())))

    def initialize_state(self, context):
        store = context.get_operator_state_store()
        self.split = store.get_list_state(ListStateDescriptor("split", Types.INT()))
        self.union = store.get_union_list_state(ListStateDescriptor("union", Types.INT()))
        self.rules = store.get_broadcast_state(MapStateDescriptor("rules", Types.STRING(), Types.INT()))
        self.restored = context.get_restored_checkpoint_id() if context.is_restored() else None

    def map(self, value):
        self.seen.append(value)
        return value

    def snapshot_state(self, context):
        self.split.update(self.seen)
        self.union.update(self.seen)
        self.rules.put("checkpoint", context.get_checkpoint_id())


def test_operator_state_is_spread_over_other_subtasks_as_documented(tmp_path):
    def draw(env):
        return numbers(env, 24, 3, run=1).rebalance().map(Keeps()).uid("keeps")

    first = interrupted(tmp_path, draw, 2)
    assert all(entry[0] is None and not entry[2] and not entry[4] for entry in LOG)
    LOG.clear()
    start_scripted(draw(environment(tmp_path, 3)), restore_path=first)
    restored = LOG[:3]
    everything = restored[0][3]
    assert everything and all(entry[3] == everything for entry in restored), "union: everything for everyone"
    assert sorted(n for entry in restored for n in entry[2]) == everything, "split: each element once"
    sizes = {index: len(elements) for _, index, elements, _, _ in restored}
    base, more = divmod(len(everything), 3)
    assert sizes == {index: base + (index < more) for index in range(3)}
    assert {tuple(entry[4].items()) for entry in restored} == {(("checkpoint", restored[0][0]),)}


class Parts(MapFunction, ListCheckpointed):
    """One number per subtask, which cannot be split; a subtask that restores several adds them up."""

    def __init__(self):
        self.count = 0

    def map(self, value):
        self.count += 1
        return value

    def snapshot_state(self, checkpoint_id, timestamp):
        return [self.count] if self.count else None

    def restore_state(self, state):
        LOG.append(list(state))
        self.count = sum(state)


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (2, 3), (2, 2)])
def test_list_checkpointed_parts_are_shared_out_and_every_subtask_is_told(tmp_path, before, after):
    def draw(env):
        return numbers(env, 24, 3, run=1).rebalance().map(Parts()).uid("parts")

    newest = interrupted(tmp_path, draw, before)
    assert LOG == [], "a fresh start restores nothing"
    start_scripted(draw(environment(tmp_path, after)), restore_path=newest)
    restored = LOG[:after]
    assert len(restored) == after, "also those that get nothing"
    assert Counter(map(len, restored)) == Counter(
        (before // after + (i < before % after)) if before != after else 1 for i in range(after)
    )


class NoParts(MapFunction, ListCheckpointed):
    def __init__(self, state):
        self.state = state

    def map(self, value):
        return value

    def snapshot_state(self, checkpoint_id, timestamp):
        return self.state

    def restore_state(self, state):
        raise AssertionError("there is nothing to restore")


@pytest.mark.parametrize("state", [5, "text", {"a": 1}])
def test_parts_that_are_no_list_are_refused_with_what_to_return(state):
    env = environment()
    env.set_restart_strategy(RestartStrategies.no_restart())
    with pytest.raises(JobExecutionError, match=r"NoParts\.snapshot_state returned .*a list with one part"):
        run_scripted(numbers(env).map(NoParts(state)))


class InitializesKeyedState(KeyedProcessFunction, CheckpointedFunction):
    def initialize_state(self, context):
        self.count = context.get_keyed_state_store().get_state(ValueStateDescriptor("count", Types.INT()))

    def open(self, runtime_context):
        assert runtime_context.get_state(ValueStateDescriptor("count", Types.INT())) is self.count

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield ctx.get_current_key(), self.count.value()

    def snapshot_state(self, context):
        pass


def test_keyed_state_may_be_asked_for_in_initialize_state_and_is_the_same_as_in_open():
    stream = numbers(environment()).key_by(lambda n: n % 2).process(InitializesKeyedState())
    run = run_scripted(stream, Script(crashes=[Crash("after-epoch", 4)]))
    assert run.records[-2:] == [(0, 6), (1, 6)]


class AsksWithoutKeys(MapFunction, CheckpointedFunction):
    def initialize_state(self, context):
        context.get_keyed_state_store().get_state(ValueStateDescriptor("count"))

    def map(self, value):
        return value

    def snapshot_state(self, context):
        pass


def test_there_is_no_keyed_state_on_a_stream_without_keys():
    run = start_scripted(numbers(environment()).map(AsksWithoutKeys()))
    with pytest.raises(JobExecutionError, match="keyed state 'count' was requested on a stream that is not keyed"):
        run.handle.wait(0)
    assert issubclass(StateNotKeyed, Exception) and run.handle.progress().restarts == 0


class Both(MapFunction, CheckpointedFunction, ListCheckpointed):
    def map(self, value):
        return value

    def initialize_state(self, context):
        pass

    def snapshot_state(self, *args):
        pass

    def restore_state(self, state):
        pass


def test_a_function_takes_part_in_one_way_and_is_told_so_where_it_is_used():
    with pytest.raises(InvalidProgramError, match="Both is both a CheckpointedFunction and a ListCheckpointed"):
        numbers(environment()).map(Both())


class Times(MapFunction, CheckpointedFunction):
    def open(self, runtime_context):
        self.index = runtime_context.get_index_of_this_subtask()

    def map(self, value):
        return value

    def initialize_state(self, context):
        pass

    def snapshot_state(self, context):
        LOG.append((context.get_checkpoint_id(), context.get_checkpoint_timestamp(), self.index))


def test_every_subtask_is_told_the_same_number_and_time_of_a_checkpoint():
    env = environment(parallelism=3)
    run_scripted(numbers(env, 12, 3, run=1).map(Times()))
    times = {}
    for checkpoint_id, timestamp, _ in LOG:
        assert times.setdefault(checkpoint_id, timestamp) == timestamp
    assert sorted(times.values()) == list(times.values()) and len(set(times.values())) == len(times) > 1
    assert min(times.values()) > 1_000_000, "the script's clock begins there"


class FailsWhenTold(MapFunction, CheckpointListener):
    failures = 0

    def map(self, value):
        return value

    def notify_checkpoint_complete(self, checkpoint_id):
        if type(self).failures == 0:
            type(self).failures = 1
            raise ValueError("not now")


def test_an_error_of_a_listener_fails_the_attempt():
    FailsWhenTold.failures = 0
    run = run_scripted(numbers(environment()).map(FailsWhenTold()))
    assert run.handle.progress().restarts == 1
    assert sorted(set(run.records)) == list(range(12))


class RememberingReduce(ReduceFunction, ListCheckpointed):
    def __init__(self):
        self.calls = 0

    def reduce(self, value1, value2):
        self.calls += 1
        return value1 + value2

    def snapshot_state(self, checkpoint_id, timestamp):
        return [("reduce", self.calls)]

    def restore_state(self, state):
        LOG.append(("reduce", state))


class RememberingWindow(WindowFunction, ListCheckpointed):
    def apply(self, key, window, inputs):
        yield from inputs

    def snapshot_state(self, checkpoint_id, timestamp):
        return [("window", 1)]

    def restore_state(self, state):
        LOG.append(("window", state))


def test_two_functions_of_one_operator_keep_their_parts_apart():
    keyed = numbers(environment()).key_by(lambda n: 0)
    stream = keyed.window(CountTumblingWindowAssigner.of(5)).reduce(RememberingReduce(), RememberingWindow())
    run_scripted(stream, Script(crashes=[Crash("after-epoch", 3)]))
    assert [(who, {name for name, _ in state}) for who, state in LOG] == [
        ("reduce", {"reduce"}),
        ("window", {"window"}),
    ]


class BufferingSink(SinkFunction, CheckpointedFunction):
    """The worked example of the reference: a b | checkpoint | c, crash, c again."""

    def __init__(self, threshold):
        self.threshold, self.buffer = threshold, []

    def invoke(self, value, context):
        self.buffer.append(value)
        if len(self.buffer) == self.threshold:
            LOG.append(list(self.buffer))
            self.buffer.clear()

    def initialize_state(self, context):
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("buffered"))
        if context.is_restored():
            self.buffer = list(self.state.get())

    def snapshot_state(self, context):
        self.state.clear()
        self.state.add_all(self.buffer)


def test_a_buffer_that_was_checkpointed_is_filled_again():
    env = environment()
    source = ScriptedSource([["a", "b", "c"]], [2, 1])
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "letters")
    stream.add_sink(BufferingSink(3))
    run_scripted(env, Script(checkpoints=[True, False], crashes=[Crash("after-epoch", 3)]))
    assert LOG[0] == ["a", "b", "c"] and set(map(tuple, LOG)) == {("a", "b", "c")}


class OneName(KeyedProcessFunction, CheckpointedFunction):
    """Keyed state and operator state of the same name are independent."""

    def initialize_state(self, context):
        self.of_key = context.get_keyed_state_store().get_state(ValueStateDescriptor("count", Types.INT(), 0))
        names = ListStateDescriptor("count", Types.STRING())
        self.of_subtask = context.get_operator_state_store().get_list_state(names)
        LOG.append((context.is_restored(), list(self.of_subtask.get())))

    def snapshot_state(self, context):
        self.of_subtask.update(["kept"])

    def process_element(self, value, ctx):
        self.of_key.update(self.of_key.value() + 1)
        yield ctx.get_current_key(), self.of_key.value()


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_keyed_and_operator_state_may_have_the_same_name(tmp_path, backend):
    def draw(env):
        return numbers(env).key_by(lambda n: n % 2).process(OneName()).uid("one name")

    newest = interrupted(tmp_path, draw, 1, state_backend=backend)
    LOG.clear()
    run = run_scripted(draw(environment(tmp_path)), restore_path=newest, state_backend=backend)
    assert LOG == [(True, ["kept"])]
    assert max(run.records) == (1, 6)
    assert (0, 1) not in run.records
