"""Where the declared type of a stream is checked and where not, as docs/guides/programs.md says."""

from __future__ import annotations

from typing import Any

import pytest

from ekorn.common import Types
from ekorn.datastream import DataStream, OutputTag, ProcessFunction, StreamExecutionEnvironment
from ekorn.errors import JobExecutionError, RecordTypeError
from ekorn.testing.local_run import collect_locally, on_local_engine

TAG = OutputTag("numbers", Types.INT())


class Aside(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        yield TAG, value


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)


def same(value: Any) -> Any:
    return value


@pytest.fixture
def wrong(env: StreamExecutionEnvironment) -> DataStream:
    """Return a stream of a str, declared as a stream of ints."""
    return env.from_collection(["x"]).map(same, Types.INT())


CHECKED = {
    "another subtask": lambda wrong: wrong.rebalance().map(same),
    "a key": lambda wrong: wrong.key_by(same).map(same),
    "another vertex": lambda wrong: wrong.map(same, Types.INT()).disable_chaining().map(same),
    "a window": lambda wrong: wrong.count_window_all(1).reduce(max),
    "a declared key": lambda wrong: wrong.map(same).key_by(same, Types.INT()).map(same),
    "a side output": lambda wrong: wrong.map(same).process(Aside()).get_side_output(TAG).map(same),
}
UNCHECKED = {
    "the next operator of the chain": lambda wrong: wrong.map(same),
    "print": lambda wrong: wrong.print(),
}


@pytest.mark.parametrize("place", CHECKED)
def test_a_declared_type_is_checked_where_records_leave_their_chain(env, wrong, place):
    CHECKED[place](wrong)
    with on_local_engine(), pytest.raises(JobExecutionError, match="expected Integer, found 'x'"):
        env.execute()


def test_a_declared_type_is_checked_for_collections_and_collected_records(env, wrong):
    with pytest.raises(RecordTypeError, match="expected Integer, found 'x'"):
        env.from_collection(["x"], Types.INT())
    with pytest.raises(JobExecutionError, match="expected Integer, found 'x'"):
        collect_locally(wrong)


@pytest.mark.parametrize("place", UNCHECKED)
def test_a_declared_type_is_not_checked_within_a_chain(env, wrong, place):
    UNCHECKED[place](wrong)
    with on_local_engine():
        env.execute()
