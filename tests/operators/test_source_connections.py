"""A source's connection: one per subtask, told of completed checkpoints, of the first discovery and of its end."""

import pytest

from ekorn.common import RestartStrategies, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.functions.source_contract import Batch, Boundedness, Source, SourceConnection, Split, SplitReader
from ekorn.testing.local_run import collect_locally

CALLS = []
COUNT = 200


class Numbers(SplitReader):
    def __init__(self, split, position):
        self._name, self._next = split.id, position or 0

    def read(self, max_records):
        last = min(COUNT, self._next + 5)
        batch = Batch([f"{self._name}-{n}" for n in range(self._next, last)])
        self._next = last
        return batch

    def position(self):
        return self._next

    @property
    def finished(self):
        return self._next == COUNT


class Connection(SourceConnection):
    def __init__(self, subtask_index):
        self._index = subtask_index
        CALLS.append(("connect", subtask_index))

    def discover_splits(self, parallelism, *, first):
        CALLS.append(("discover", self._index, first))
        return [Split("a"), Split("b")]

    def create_reader(self, split, position):
        CALLS.append(("read", self._index, split.id, position))
        return Numbers(split, position)

    def checkpoint_completed(self, positions):
        CALLS.append(("completed", self._index, dict(positions)))

    def close(self):
        CALLS.append(("close", self._index))


class Connected(Source):
    """An unbounded source that ends with its splits, and decides who reads them."""

    boundedness = Boundedness.CONTINUOUS_UNBOUNDED
    ends = True
    discovery_interval_ms = 3_600_000

    def connect(self, subtask_index):
        return Connection(subtask_index)

    def owner(self, split_id, parallelism):
        return parallelism - 1

    def discover_splits(self, parallelism):
        raise AssertionError("a job uses the connection")

    def create_reader(self, split, position):
        raise AssertionError("a job uses the connection")


class FailsOnce:
    def __call__(self, value):
        if value == "a-150" and not any(call[0] == "failed" for call in CALLS):
            CALLS.append(("failed",))
            raise RuntimeError("once")
        return value


@pytest.fixture
def records():
    CALLS.clear()
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env.enable_checkpointing(10)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 0))
    stream = env.from_source(Connected(), WatermarkStrategy.no_watermarks(), "source").map(FailsOnce())
    return collect_locally(stream)


def test_an_unbounded_source_ends_with_its_splits_and_nothing_is_lost_or_twice(records):
    assert sorted(records) == sorted(f"{name}-{n}" for name in "ab" for n in range(COUNT))


def test_the_source_decides_which_subtask_reads_a_split(records):
    assert {call[1] for call in CALLS if call[0] == "read"} == {1}


def test_only_a_start_without_positions_is_a_first_discovery(records):
    failed = CALLS.index(("failed",))
    assert {call for call in CALLS[:failed] if call[0] == "discover"} == {("discover", 0, True), ("discover", 1, True)}
    restored = [call for call in CALLS[failed:] if call[0] == "read" and call[3] is not None]
    assert bool(restored) is (("discover", 1, True) not in CALLS[failed:])


def test_every_connection_is_closed(records):
    opened = [call[1] for call in CALLS if call[0] == "connect"]
    assert sorted(opened) == sorted(call[1] for call in CALLS if call[0] == "close")


def test_completed_checkpoints_tell_positions_up_to_the_end(records):
    told = [call[2] for call in CALLS if call[0] == "completed"]
    assert told
    assert told[-1] == {"a": COUNT, "b": COUNT}
    assert all(0 <= position <= COUNT for positions in told for position in positions.values())
