"""Requests for batches of records: when a batch is sent, and its results."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.common import Time
from ekorn.datastream import AsyncBatchFunction, AsyncDataStream, AsyncRetryStrategy, ProcessFunction
from ekorn.datastream.async_retry_predicates import has_exception_predicate
from ekorn.errors import InvalidProgramError, JobExecutionError
from ekorn.testing.local_run import collect_locally
from tests.examples_by_profile import examples
from tests.operators.async_io.services import AskMany, Service, allowed
from tests.operators.windows.local_run import Run, environment, graph_of, timed

LONG = Time.seconds(60)
MODES = {"ordered": AsyncDataStream.ordered_wait_batch, "unordered": AsyncDataStream.unordered_wait_batch}


def doubled(values):
    return [value * 2 for value in values]


def sizes(service):
    return [len(batch) for batch in service.asked]


@pytest.mark.parametrize("mode", MODES)
@given(count=st.integers(0, 40), size=st.integers(1, 9), capacity=st.integers(1, 4), latency=st.integers(0, 3))
@settings(max_examples=examples(12))
def test_every_record_gets_its_result(mode, count, size, capacity, latency):
    service = Service(lambda batch: (batch[0] * 7 + latency) % 4, doubled)
    numbers = environment().from_collection(range(count))
    found = collect_locally(MODES[mode](numbers, AskMany(service), LONG, size, capacity=capacity))
    assert sorted(found) == doubled(range(count))
    if mode == "ordered":
        assert found == doubled(range(count))
    full, rest = divmod(count, size)
    assert sorted(sizes(service)) == sorted([size] * full + ([rest] if rest else []))
    assert service.most <= capacity


@pytest.fixture
def started():
    runs = []

    def start(stream):
        run = Run(graph_of(stream))
        runs.append(run)
        run.deploy()
        return run

    yield start
    for run in runs:
        run.engine.shutdown()


def until(run, condition):
    for _ in range(20_000):
        if condition():
            return
        run.step(0)
    raise AssertionError(f"it did not happen; the job gave {run.records}")


def test_a_batch_that_is_not_full_is_sent_when_its_time_is_up(started):
    service = Service(answer=doubled)
    numbers = environment().from_collection([1, 2, 3])
    run = started(AsyncDataStream.ordered_wait_batch(numbers, AskMany(service), LONG, 10, Time.seconds(5)))
    run.step(1)
    run.clock.advance(4_000)
    run.step(1)
    due = [ack.next_timer_ms for ack in run.acks if ack.next_timer_ms is not None]
    assert due == [run.clock.now_ms() + 1_000], "the job may sleep until then"
    assert service.asked == []
    run.clock.advance(1_000)
    until(run, lambda: run.records == [2, 4])
    assert service.asked == [(1, 2)]
    while not run.finished:
        run.step()
    assert (run.records, service.asked) == ([2, 4, 6], [(1, 2), (3,)])


def test_without_a_time_limit_a_batch_waits_until_it_is_full(started):
    service = Service(answer=doubled)
    numbers = environment().from_collection([1, 2, 3])
    run = started(AsyncDataStream.ordered_wait_batch(numbers, AskMany(service), LONG, 2))
    run.step(1)
    run.clock.advance(3_600_000)
    run.step(0)
    assert service.asked == []
    assert all(ack.next_timer_ms is None for ack in run.acks), "nothing is in flight: the job may sleep"
    run.step(1)
    until(run, lambda: run.records == [2, 4])


class WithWatermark(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


@pytest.mark.parametrize("mode", MODES)
def test_results_of_one_batch_leave_on_both_sides_of_a_watermark_inside_it(mode, started):
    service = Service(gate=allowed, answer=list)
    stream = timed(environment(), [("a", 1, 1), ("b", 2, 2), ("c", 3, None)])
    run = started(MODES[mode](stream, AskMany(service), LONG, 3).process(WithWatermark()))
    run.step()
    assert run.records == []
    service.allow(("a", "b", "c"))
    while not run.finished:
        run.step()
    assert run.records == [("a", 1, -(2**63)), ("b", 2, 1), ("c", 3, 2)]


def test_a_batch_is_asked_for_again_as_a_whole():
    def refuse_once(values):
        if service.asked.count(values) == 1:
            raise ConnectionError("not yet")
        return list(values)

    service = Service(answer=refuse_once)
    stream = environment().from_collection([1, 2, 3, 4])
    strategy = AsyncRetryStrategy.fixed_delay(2, 1, None, has_exception_predicate)
    found = AsyncDataStream.ordered_wait_batch(stream, AskMany(service), LONG, 2, async_retry_strategy=strategy)
    assert collect_locally(found) == [1, 2, 3, 4]
    assert sorted(service.asked) == [(1, 2), (1, 2), (3, 4), (3, 4)]


class Slow(AsyncBatchFunction):
    async def async_invoke_batch(self, inputs):
        await asyncio.sleep(60)


class SlowWithDefault(Slow):
    def timeout(self, inputs):
        return [-value for value in inputs]


def test_what_timeout_gives_is_one_result_for_each_record():
    stream = environment().from_collection([1, 2, 3])
    given_up = AsyncDataStream.ordered_wait_batch(stream, SlowWithDefault(), Time.milliseconds(10), 2)
    assert collect_locally(given_up) == [-1, -2, -3]
    failing = AsyncDataStream.ordered_wait_batch(stream, Slow(), Time.milliseconds(10), 2)
    with pytest.raises(JobExecutionError, match=r"record \[1, 2\]: TimeoutError"):
        collect_locally(failing)


@pytest.mark.parametrize(
    ("answer", "words"), [([1], "returned 1 results for 2 inputs"), (None, "returned None; return a list")]
)
def test_a_batch_has_a_result_for_each_record(answer, words):
    stream = environment().from_collection([1, 2])
    with pytest.raises(JobExecutionError, match=words):
        collect_locally(AsyncDataStream.ordered_wait_batch(stream, AskMany(Service(answer=lambda _: answer)), LONG, 2))


class NotAsync(AsyncBatchFunction):
    def async_invoke_batch(self, inputs):
        return inputs


def test_what_is_wrong_with_a_call_is_said_where_it_is_written():
    stream = environment().from_collection([1])
    with pytest.raises(ValueError, match="batch_size"):
        AsyncDataStream.ordered_wait_batch(stream, Slow(), LONG, 0)
    with pytest.raises(InvalidProgramError, match="async def"):
        AsyncDataStream.unordered_wait_batch(stream, NotAsync(), LONG, 2)
    with pytest.raises(ValueError, match="batch_timeout cannot be negative"):
        AsyncDataStream.unordered_wait_batch(stream, Slow(), LONG, 2, Time(-5))
