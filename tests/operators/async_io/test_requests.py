"""Asynchronous I/O: order, capacity, timeouts, retries, errors."""

import asyncio
import functools
import threading
import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.common import Duration, Time, Types
from ekorn.datastream import (
    AsyncDataStream,
    AsyncFunction,
    AsyncRetryStrategy,
    KeyedProcessFunction,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from ekorn.datastream.async_retry_predicates import (
    empty_result_predicate,
    exception_type_predicate,
    has_exception_predicate,
)
from ekorn.datastream.async_retry_strategies import NO_RETRY_STRATEGY, FixedDelayRetryStrategy, NoRetryStrategy
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.errors import InvalidProgramError, JobExecutionError
from ekorn.testing.local_run import collect_locally
from tests.examples_by_profile import examples
from tests.operators.async_io.services import Ask, AskOrMakeDo, Service

LONG = Time.seconds(60)
MODES = {"ordered": AsyncDataStream.ordered_wait, "unordered": AsyncDataStream.unordered_wait}
WITH_RETRY = {
    "ordered": AsyncDataStream.ordered_wait_with_retry,
    "unordered": AsyncDataStream.unordered_wait_with_retry,
}


def environment(parallelism=1):
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)


def numbers(count, parallelism=1):
    return environment(parallelism).from_collection(range(count))


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    for _ in range(1000):
        left = [t.name for t in threading.enumerate() if t.name.startswith("async-")]
        if not left:
            return
        time.sleep(0.01)
    raise AssertionError(f"threads are left behind: {left}")


# ------------------------------------------------------------------------------------------------------- order


@given(
    latencies=st.lists(st.integers(0, 4), min_size=1, max_size=30),
    results=st.lists(st.integers(0, 3), min_size=1, max_size=5),
    capacity=st.integers(1, 12),
    parallelism=st.integers(1, 3),
)
@settings(max_examples=examples(20))
def test_ordered_requests_give_what_a_flat_map_gives(latencies, results, capacity, parallelism):
    service = Service(lambda n: latencies[n], lambda n: [(n, i) for i in range(results[n % len(results)])])
    found = collect_locally(
        AsyncDataStream.ordered_wait(numbers(len(latencies), parallelism), Ask(service), LONG, capacity)
    )
    expected = [pair for n in range(len(latencies)) for pair in service.answer(n)]
    assert Counter(found) == Counter(expected)
    if parallelism == 1:
        assert found == expected
    assert service.most <= capacity * parallelism


@given(
    latencies=st.lists(st.integers(0, 4), min_size=1, max_size=30),
    capacity=st.integers(1, 12),
    parallelism=st.integers(1, 3),
)
@settings(max_examples=examples(15))
def test_unordered_requests_lose_and_repeat_nothing(latencies, capacity, parallelism):
    service = Service(lambda n: latencies[n])
    stream = AsyncDataStream.unordered_wait(numbers(len(latencies), parallelism), Ask(service), LONG, capacity)
    assert sorted(collect_locally(stream)) == list(range(len(latencies)))
    assert service.most <= capacity * parallelism


def test_unordered_results_leave_as_they_come():
    service = Service(gate=lambda service, n: n == 4 or n + 1 in service.answered)
    assert collect_locally(AsyncDataStream.unordered_wait(numbers(5), Ask(service), LONG)) == [4, 3, 2, 1, 0]


@pytest.mark.parametrize("mode", MODES)
def test_as_many_requests_as_the_capacity_allows_run_at_once(mode):
    service = Service(gate=lambda service, n: service.most == 7)
    found = collect_locally(MODES[mode](numbers(40), Ask(service), LONG, 7))
    assert sorted(found) == list(range(40))
    assert service.most == 7


@pytest.mark.parametrize("mode", MODES)
def test_results_are_read_in_batch_mode_too(mode):
    env = environment()
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    stream = env.from_collection([("a", 1), ("b", 2), ("a", 3)])
    asked = MODES[mode](stream, Ask(Service(lambda pair: 3 - pair[1])), LONG)
    assert sorted(collect_locally(asked.key_by(lambda pair: pair[0]).sum(1))) == [("a", 4), ("b", 2)]


# ------------------------------------------------------------------------------------------- around the function


class Remembering(AsyncFunction):
    def open(self, runtime_context):
        self.factor = int(runtime_context.get_job_parameter("factor", "1"))
        self.counter = runtime_context.get_metrics_group().counter("asked")

    async def async_invoke(self, value):
        self.counter.inc()
        return [value * self.factor]


def test_the_function_is_opened_like_any_other():
    env = environment()
    env.get_config().set_global_job_parameters({"factor": "10"})
    stream = AsyncDataStream.ordered_wait(env.from_collection([1, 2]), Remembering(), LONG, output_type=Types.INT())
    assert stream.get_type() == Types.INT()
    assert collect_locally(stream) == [10, 20]


def test_a_keyed_stream_is_asked_about_by_its_records():
    keyed = environment(2).from_collection([("a", 1), ("b", 2)]).key_by(lambda pair: pair[0])
    assert sorted(collect_locally(AsyncDataStream.ordered_wait(keyed, Ask(Service()), LONG))) == [("a", 1), ("b", 2)]


class WithState(AsyncFunction):
    def open(self, runtime_context):
        runtime_context.get_state(ValueStateDescriptor("seen", Types.INT()))

    async def async_invoke(self, value):
        return [value]


def test_there_is_no_keyed_state_in_async_functions():
    keyed = environment().from_collection([("a", 1)]).key_by(lambda pair: pair[0])
    with pytest.raises(JobExecutionError, match="seen"):
        collect_locally(AsyncDataStream.ordered_wait(keyed, WithState(), LONG))


class Reused(KeyedProcessFunction):
    """Yields one list again and again, changed in between."""

    def open(self, runtime_context):
        self.record = [0]

    def process_element(self, value, ctx):
        self.record[0] = value
        yield self.record


def test_a_record_that_is_changed_later_is_asked_about_as_it_was():
    stream = environment().from_collection([1, 2, 3]).key_by(lambda _: 0).process(Reused())
    service = Service(lambda _: 5, list)
    assert collect_locally(AsyncDataStream.ordered_wait(stream, Ask(service), LONG)) == [1, 2, 3]


def test_two_async_operators_in_one_chain():
    first, second = Service(lambda n: n % 3, lambda n: [n, n + 100]), Service(lambda n: n % 4, lambda n: [n * 2])
    stream = AsyncDataStream.ordered_wait(numbers(20), Ask(first), LONG, 4)
    stream = AsyncDataStream.ordered_wait(stream, Ask(second), LONG, 4)
    assert collect_locally(stream) == [v * 2 for n in range(20) for v in (n, n + 100)]


# ---------------------------------------------------------------------------------------------------- timeouts


def test_a_request_that_takes_too_long_fails_the_job_with_its_record():
    stream = AsyncDataStream.ordered_wait(numbers(3), Ask(Service(lambda n: 60_000 * (n == 1))), Time.milliseconds(20))
    with pytest.raises(JobExecutionError, match=r"async wait operator.*asking.*on record 1: TimeoutError"):
        collect_locally(stream.uid("asking"))


@pytest.mark.parametrize("mode", MODES)
def test_what_timeout_gives_counts_in_place_of_the_answer(mode):
    service = Service(lambda n: 60_000 * (n == 1))
    stream = MODES[mode](numbers(3), AskOrMakeDo(service), Duration.of_millis(20))
    found = collect_locally(stream)
    assert sorted(found, key=str) == [("no answer", 1), 0, 2]
    if mode == "ordered":
        assert found == [0, ("no answer", 1), 2]
    assert service.timed_out == service.cancelled == [1]


class Deaf(AsyncFunction):
    """Ignores its cancellation for a while."""

    async def async_invoke(self, value):
        for _ in range(3):
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                continue
        return ["too late"]

    def timeout(self, value):
        return ["in time"]


def test_what_a_coroutine_does_after_its_timeout_is_of_no_interest():
    assert collect_locally(AsyncDataStream.ordered_wait(numbers(2), Deaf(), Time.milliseconds(10))) == ["in time"] * 2


def test_without_a_timeout_a_request_may_take_its_time():
    assert collect_locally(AsyncDataStream.ordered_wait(numbers(2), Ask(Service(lambda n: 30)), Time(0))) == [0, 1]


# ---------------------------------------------------------------------------------------------------- attempts


class Flaky(Service):
    """Fails, or returns no result, for the first few requests of a record."""

    def __init__(self, failures, how):
        super().__init__()
        self.failures = failures
        self.answer = self._answer
        self.how = how

    def _answer(self, value):
        if self.asked.count(value) <= self.failures:
            return self.how(value)
        return [value]


def refuse(value):
    raise ConnectionError(f"refused {value}")


def nothing(value):
    return []


@pytest.mark.parametrize("mode", WITH_RETRY)
@pytest.mark.parametrize(
    "strategy",
    [
        AsyncRetryStrategy.fixed_delay(3, 1, empty_result_predicate, has_exception_predicate),
        AsyncRetryStrategy.exponential_backoff(3, 1, 4, 2.0, empty_result_predicate, has_exception_predicate),
    ],
    ids=["fixed", "exponential"],
)
@pytest.mark.parametrize("how", [refuse, nothing])
def test_a_request_is_made_again_until_it_succeeds(mode, strategy, how):
    service = Flaky(3, how)
    stream = WITH_RETRY[mode](numbers(5), Ask(service), LONG, strategy)
    assert sorted(collect_locally(stream)) == [0, 1, 2, 3, 4]
    assert Counter(service.asked) == dict.fromkeys(range(5), 4)


def test_after_the_last_attempt_its_exception_counts():
    service = Flaky(99, refuse)
    strategy = AsyncRetryStrategy.fixed_delay(2, 1, None, has_exception_predicate)
    with pytest.raises(JobExecutionError, match="refused 0"):
        collect_locally(AsyncDataStream.ordered_wait_with_retry(numbers(1), Ask(service), LONG, strategy))
    assert service.asked == [0, 0, 0]


def test_after_the_last_attempt_its_result_counts():
    service = Flaky(99, nothing)
    strategy = AsyncRetryStrategy.fixed_delay(2, 1, empty_result_predicate, None)
    assert collect_locally(AsyncDataStream.ordered_wait_with_retry(numbers(1), Ask(service), LONG, strategy)) == []
    assert service.asked == [0, 0, 0]


def test_what_the_predicates_do_not_name_is_not_tried_again():
    only_timeouts = functools.partial(exception_type_predicate, expected_error_type=TimeoutError)
    strategy = AsyncRetryStrategy.fixed_delay(5, 1, None, only_timeouts)
    service = Flaky(1, refuse)
    with pytest.raises(JobExecutionError, match="refused 0"):
        collect_locally(AsyncDataStream.ordered_wait_with_retry(numbers(1), Ask(service), LONG, strategy))
    assert service.asked == [0]


def test_the_timeout_holds_for_all_attempts_together():
    service = Flaky(10_000, refuse)
    strategy = AsyncRetryStrategy.fixed_delay(10_000, 1, None, has_exception_predicate)
    stream = AsyncDataStream.ordered_wait_with_retry(numbers(1), AskOrMakeDo(service), Time.milliseconds(30), strategy)
    assert collect_locally(stream) == [("no answer", 0)]
    assert set(service.asked) == {0}


class BrokenStrategy(NoRetryStrategy):
    def can_retry(self, current_attempts):
        raise KeyError("no such strategy")

    def get_retry_predicate(self):
        return FixedDelayRetryStrategy(1, 1, None, has_exception_predicate).get_retry_predicate()


def test_an_error_in_a_strategy_is_an_error_of_the_job():
    stream = AsyncDataStream.ordered_wait_with_retry(numbers(1), Ask(Flaky(1, refuse)), LONG, BrokenStrategy())
    with pytest.raises(JobExecutionError, match="no such strategy"):
        collect_locally(stream)


# ------------------------------------------------------------------------------------------------------ errors


class Fails(AsyncFunction):
    async def async_invoke(self, value):
        return await self.ask(value)

    async def ask(self, value):
        if value == ("user", 3):
            raise PermissionError("not for you")
        await asyncio.sleep(0.01)
        return [value]


def test_an_exception_names_operator_and_record_and_shows_the_users_own_traceback():
    users = environment().from_collection([("user", n) for n in range(6)])
    stream = AsyncDataStream.ordered_wait(users, Fails(), LONG).name("lookup").uid("lookup-uid")
    with pytest.raises(JobExecutionError) as caught:
        collect_locally(stream)
    error = caught.value
    assert error.operator_name == "lookup" and error.uid == "lookup-uid"
    assert error.record_preview == "('user', 3)"
    assert "PermissionError: not for you" in str(error.user_traceback)
    assert "in ask" in str(error.user_traceback) and "async_requests" not in str(error.user_traceback)


@pytest.mark.parametrize(("answer", "words"), [(None, "None"), (7, "7")])
def test_a_result_that_is_no_list_is_refused(answer, words):
    stream = AsyncDataStream.ordered_wait(numbers(1), Ask(Service(answer=lambda _: answer)), LONG)
    with pytest.raises(JobExecutionError, match=rf"returned {words} for .*; return a list of results, \[\] for none"):
        collect_locally(stream)


class Leaves(AsyncFunction):
    async def async_invoke(self, value):
        raise SystemExit(3) if value else asyncio.CancelledError


@pytest.mark.parametrize(("value", "words"), [(0, "CancelledError"), (1, "SystemExit")])
def test_whatever_a_coroutine_raises_is_reported(value, words):
    stream = AsyncDataStream.ordered_wait(environment().from_collection([value]), Leaves(), LONG)
    with pytest.raises(JobExecutionError, match=words):
        collect_locally(stream)


class Careless(AsyncFunction):
    """Leaves a task running that tries to exit the process."""

    async def async_invoke(self, value):
        self.task = asyncio.ensure_future(self.leave())
        await asyncio.sleep(0.01)
        return [value]

    async def leave(self):
        raise SystemExit(1)


def test_what_a_task_does_that_was_left_running_is_logged(caplog):
    assert collect_locally(AsyncDataStream.ordered_wait(numbers(2), Careless(), LONG)) == [0, 1]
    assert "SystemExit(1)" in caplog.text


def test_an_error_behind_the_async_operator_is_blamed_on_the_operator_behind_it():
    stream = AsyncDataStream.ordered_wait(numbers(3), Ask(Service()), LONG).map(lambda n: 1 // (n - 1)).name("divide")
    with pytest.raises(JobExecutionError) as caught:
        collect_locally(stream)
    assert (caught.value.operator_name, caught.value.record_preview) == ("divide", "1")


class NotAsync(AsyncFunction):
    def async_invoke(self, value):
        return [value]


def test_what_is_wrong_with_a_call_is_said_where_it_is_written():
    stream, ask = numbers(1), Ask(Service())
    with pytest.raises(InvalidProgramError, match="async def"):
        AsyncDataStream.ordered_wait(stream, NotAsync(), LONG)
    with pytest.raises(TypeError, match="needs a AsyncFunction"):
        AsyncDataStream.ordered_wait(stream, lambda value: [value], LONG)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="needs a stream"):
        AsyncDataStream.ordered_wait([1], ask, LONG)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="capacity"):
        AsyncDataStream.unordered_wait(stream, ask, LONG, 0)
    with pytest.raises(ValueError, match="negative"):
        AsyncDataStream.unordered_wait(stream, ask, Time(-1))
    with pytest.raises(TypeError, match="AsyncRetryStrategy"):
        AsyncDataStream.unordered_wait_with_retry(stream, ask, LONG, None)  # type: ignore[arg-type]
    with pytest.raises(InvalidProgramError, match="timeout greater than 0"):
        AsyncDataStream.ordered_wait_with_retry(stream, ask, Time(0), FixedDelayRetryStrategy(1, 1, None, None))
    with pytest.raises(ValueError, match="max_attempts must be greater than zero"):
        AsyncRetryStrategy.fixed_delay(0, 1, None, None)
    assert AsyncRetryStrategy.no_restart() is NO_RETRY_STRATEGY
