"""Snapshots of a harness: restored in the same and in other harnesses, at any parallelism, with all state."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.common import Configuration, Time, Types
from ekorn.datastream.functions import KeyedProcessFunction, MapFunction
from ekorn.datastream.state import ListStateDescriptor, ValueStateDescriptor
from ekorn.datastream.window import TumblingEventTimeWindows
from ekorn.errors import CorruptFileError, InvalidProgramError, RestoreError
from ekorn.functions.state.checkpointed import CheckpointedFunction, CheckpointListener
from ekorn.testing import KeyedOneInputHarness, OneInputHarness
from tests.examples_by_profile import examples

COUNT = ValueStateDescriptor("count", Types.INT())


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(COUNT)
        self.since_open = 0

    def process_element(self, value, ctx):
        self.since_open += 1
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        ctx.timer_service().register_event_time_timer(1000 + count)
        ctx.timer_service().register_processing_time_timer(1000 + count)
        yield value, count, self.since_open

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp, ctx.time_domain().name


def counting(**options):
    return KeyedOneInputHarness(Count(), lambda value: value, **options)


def test_restore_takes_back_what_came_after_the_snapshot():
    with counting() as harness:
        harness.process_elements("a", "a")
        saved = harness.snapshot()
        harness.process_elements("a", "a")
        harness.restore(saved)
        assert harness.state("a", COUNT) == 2
        harness.process_element("a")
        assert harness.output() == [("a", 1, 1), ("a", 2, 2), ("a", 3, 3), ("a", 4, 4), ("a", 3, 1)]


def test_timers_of_both_kinds_are_restored():
    with counting() as harness:
        harness.process_element("a")
        before = harness.timers("a")
        saved = harness.snapshot()
        harness.process_watermark(5000)
        harness.set_processing_time(5000)
        assert harness.timers("a") == []
        harness.take_output()
        harness.restore(saved)
        assert harness.timers("a") == before
        harness.process_watermark(1001)
        assert harness.output() == [("a", 1001, "PROCESSING_TIME"), ("a", 1001, "EVENT_TIME")]


def test_a_snapshot_holds_no_watermarks():
    class Watermark(KeyedProcessFunction):
        def process_element(self, value, ctx):
            yield ctx.timer_service().current_watermark()

    with KeyedOneInputHarness(Watermark(), lambda value: value) as harness:
        harness.process_watermark(7)
        harness.restore(harness.snapshot())
        harness.process_element("a")
        assert harness.output() == [-(2**63)]


def test_another_harness_goes_on_from_a_snapshot():
    with counting() as harness:
        harness.process_elements("a", "b", "a")
        saved = harness.snapshot()
    assert type(saved) is bytes
    with counting() as harness:
        harness.restore(saved)
        assert (harness.state("a", COUNT), harness.state("b", COUNT)) == (2, 1)


def test_state_in_rocksdb_is_read_snapshotted_and_restored_alike():
    configuration = Configuration()
    configuration.set_string("state.backend.type", "rocksdb")
    with counting(configuration=configuration) as harness:
        harness.process_elements("a", "b", "a")
        assert (harness.state("a", COUNT), harness.state("c", COUNT)) == (2, None)
        saved = harness.snapshot()
        harness.process_element("a")
        harness.restore(saved, parallelism=2)
        assert (harness.state("a", COUNT), harness.state("b", COUNT)) == (2, 1)
        assert len(harness.timers("a")) == 4


@settings(max_examples=examples(15))
@given(
    words=st.lists(st.text(max_size=2), max_size=20),
    cut=st.integers(0, 20),
    parallelisms=st.tuples(st.integers(1, 4), st.integers(1, 4)),
)
def test_a_crash_and_another_parallelism_change_no_count(words, cut, parallelisms):
    with counting(parallelism=parallelisms[0]) as harness:
        harness.process_elements(*words[:cut])
        saved = harness.snapshot()
        harness.process_elements(*words)
        harness.restore(saved, parallelism=parallelisms[1])
        harness.process_elements(*words[cut:])
        for word in words:
            assert harness.state(word, COUNT) == words.count(word)


def test_windows_are_restored():
    def pipeline(stream):
        windows = stream.key_by(lambda v: v[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        return windows.reduce(lambda a, b: (a[0], a[1] + b[1]))

    with OneInputHarness(pipeline) as harness:
        harness.process_element(("a", 1), 3)
        saved = harness.snapshot()
        harness.process_element(("a", 2), 4)
        harness.restore(saved, parallelism=2)
        harness.process_element(("a", 4), 5)
        harness.process_watermark(9)
        assert harness.output() == [("a", 5)]


BUFFER = ListStateDescriptor("buffer", Types.STRING())
NOTIFIED = []


class Buffer(MapFunction, CheckpointedFunction, CheckpointListener):
    def __init__(self):
        self.buffer = []

    def initialize_state(self, context):
        self.state = context.get_operator_state_store().get_list_state(BUFFER)
        self.buffer = list(self.state.get())

    def snapshot_state(self, context):
        self.state.update(self.buffer)

    def notify_checkpoint_complete(self, checkpoint_id):
        NOTIFIED.append(checkpoint_id)

    def map(self, value):
        self.buffer.append(value)
        return list(self.buffer)


def test_operator_state_is_restored_and_spread():
    NOTIFIED.clear()
    with OneInputHarness(Buffer()) as harness:
        harness.process_elements("a", "b", "c")
        saved = harness.snapshot()
        assert NOTIFIED == [1]
        assert harness.operator_state(BUFFER) == ["a", "b", "c"]
        harness.restore(saved, parallelism=2)
        assert [harness.operator_state(BUFFER, subtask=n) for n in range(2)] == [["a", "b"], ["c"]]
        harness.snapshot()
        assert NOTIFIED[1:] == [2, 2], "numbers go on from the snapshot, for both subtasks"


def test_after_a_failure_the_test_can_go_on_from_a_snapshot():
    class Fragile(Count):
        def process_element(self, value, ctx):
            if value == "boom":
                raise ValueError(value)
            yield from super().process_element(value, ctx)

    with KeyedOneInputHarness(Fragile(), lambda value: value) as harness:
        harness.process_element("a")
        saved = harness.snapshot()
        with pytest.raises(ValueError, match="boom"):
            harness.process_element("boom")
        harness.restore(saved)
        harness.process_element("a")
        assert harness.state("a", COUNT) == 2


def test_a_damaged_snapshot_is_refused():
    with counting() as harness:
        saved = harness.snapshot()
        with pytest.raises(CorruptFileError, match="snapshot given to restore"):
            harness.restore(saved[:-3])


def test_a_snapshot_of_something_else_is_refused():
    with counting() as harness:
        harness.process_element("a")
        saved = harness.snapshot()
    with OneInputHarness(lambda s: s.map(lambda v: v)) as harness, pytest.raises(RestoreError, match="holds state"):
        harness.restore(saved)


def test_more_subtasks_than_key_groups_are_refused():
    with counting(max_parallelism=4) as harness:
        harness.process_element("a")
        saved = harness.snapshot()
        with pytest.raises(InvalidProgramError, match="max parallelism of 4"):
            harness.restore(saved, parallelism=5)
        with pytest.raises(RuntimeError, match="has failed"):
            harness.process_element("a")
        harness.restore(saved, parallelism=4)
        assert harness.state("a", COUNT) == 1
