"""Asynchronous I/O across epochs: requests in flight, watermarks, checkpoints, restores, the end of the input."""

import tempfile
from collections import Counter

import pytest

from ekorn.checkpoint.restore_plan import plan_restore
from ekorn.common import Duration, Time, WatermarkStrategy
from ekorn.datastream import AsyncDataStream, AsyncRetryStrategy, KeyedProcessFunction, ProcessFunction
from ekorn.datastream.async_retry_predicates import has_exception_predicate
from ekorn.operators.asynchronous.async_wait import AsyncWaitOperator
from ekorn.testing.scripted import ScriptedSource
from tests.operators.async_io.services import SERVICES, Ask, Service, allowed
from tests.operators.windows.local_run import Run, environment, graph_of, timed

LONG = Time.seconds(60)
MODES = {"ordered": AsyncDataStream.ordered_wait, "unordered": AsyncDataStream.unordered_wait}


@pytest.fixture
def started():
    """Starts jobs, and ends them."""
    runs = []

    def start(stream, directory=None):
        run = Run(graph_of(stream), directory=directory)
        runs.append(run)
        run.deploy()
        return run

    yield start
    for run in runs:
        run.engine.shutdown()


def step_until(run, condition, max_records=0):
    """Run epochs, without records by default, until a condition holds."""
    for _ in range(20_000):
        if condition():
            return
        run.step(max_records)
    raise AssertionError(f"it did not happen; the job gave {run.records}")


# ------------------------------------------------------------------------------------------------------ epochs


@pytest.mark.parametrize("mode", MODES)
def test_an_epoch_ends_while_requests_are_in_flight_and_they_come_out_later(mode, started):
    service = Service(gate=allowed)
    run = started(MODES[mode](environment().from_collection([1, 2, 3]), Ask(service), LONG))
    run.step(2)
    assert run.records == []
    assert any(ack.next_timer_ms is not None for ack in run.acks), "the job must not sleep now"
    service.allow(2)
    step_until(run, lambda: 2 in service.answered)
    if mode == "unordered":
        step_until(run, lambda: run.records == [2])
    assert run.records == ([2] if mode == "unordered" else [])
    service.allow(1)
    step_until(run, lambda: len(run.records) == 2)
    service.allow(3)
    while not run.finished:
        run.step()
    assert run.records == ([2, 1, 3] if mode == "unordered" else [1, 2, 3])


def test_a_job_without_requests_in_flight_may_sleep(started):
    run = started(AsyncDataStream.ordered_wait(environment().from_collection([1, 2]), Ask(Service()), LONG))
    run.step(1)
    step_until(run, lambda: run.records == [1])
    assert all(ack.next_timer_ms is None for ack in run.acks)


def test_answers_that_come_soon_leave_in_their_own_epoch(started):
    numbers = environment(linger="30 s").from_collection([1, 2])
    run = started(AsyncDataStream.ordered_wait(numbers, Ask(Service(lambda _: 5)), LONG))
    assert run.step(1) == [1]


def test_a_failure_between_epochs_is_found_in_the_next_one(started):
    def answer(value):
        raise ConnectionError("gone")

    service = Service(gate=allowed, answer=answer)
    run = started(AsyncDataStream.ordered_wait(environment().from_collection([1, 2]), Ask(service), LONG))
    run.step(1)
    service.allow(1)
    with pytest.raises(Exception, match="gone"):
        step_until(run, lambda: False)


# -------------------------------------------------------------------------------------------------- watermarks


class WithWatermark(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


EVENTS = [("a", 1, None), ("b", 2, 2), ("c", 4, None), ("d", 3, 4), ("e", 9, None)]
START = -(2**63)


@pytest.mark.parametrize("mode", MODES)
def test_no_result_passes_a_watermark_and_no_watermark_a_result(mode, started):
    service = Service(gate=allowed)
    run = started(MODES[mode](timed(environment(), EVENTS), Ask(service), LONG).process(WithWatermark()))
    service.allow("e", "d", "b")  # b before a, and first of all the records behind the watermarks
    step_until(run, lambda: {"e", "d", "b"} <= set(service.answered), len(EVENTS))
    run.step()
    assert run.records == ([("b", 2, START)] if mode == "unordered" else [])
    service.allow("a", "c")
    while not run.finished:
        run.step()
    ordered = [("a", 1, START), ("b", 2, START), ("c", 4, 2), ("d", 3, 2), ("e", 9, 4)]
    unordered = [("b", 2, START), ("a", 1, START), ("d", 3, 2), ("c", 4, 2), ("e", 9, 4)]
    assert run.records == (unordered if mode == "unordered" else ordered)


class FiresAt(KeyedProcessFunction):
    """Emits a record when event time has reached a point."""

    def process_element(self, value, ctx):
        if ctx.timer_service().current_watermark() < 2:
            ctx.timer_service().register_event_time_timer(2)
        yield value

    def on_timer(self, timestamp, ctx):
        yield f"timer {timestamp}"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("parallelism", [1, 2])
def test_timers_behind_wait_for_requests_before_their_watermark(mode, parallelism, started):
    service = Service(gate=allowed)
    asked = MODES[mode](timed(environment(), EVENTS), Ask(service), LONG).set_parallelism(parallelism)
    run = started(asked.key_by(lambda v: 0).process(FiresAt()).set_parallelism(1))
    service.allow(*"bcde")
    step_until(run, lambda: set("bcde") <= set(service.answered), len(EVENTS))
    run.step()
    assert "timer 2" not in run.records
    service.allow("a")
    while not run.finished:
        run.step()
    assert sorted(run.records) == ["a", "b", "c", "d", "e", "timer 2"]
    assert run.records.index("timer 2") > max(run.records.index("a"), run.records.index("b"))


@pytest.mark.parametrize("mode", MODES)
def test_a_stream_is_idle_behind_the_operator_once_its_requests_are_answered(mode, started):
    service, env = Service(gate=allowed), environment()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value[1])
    quiet = env.from_source(ScriptedSource([[("asked", 1), ("never", 2)]], [1, *[0] * 10_000]), None, "quiet")
    quiet = quiet.assign_timestamps_and_watermarks(strategy.with_idleness(Duration.of_seconds(1)))
    busy = env.from_source(ScriptedSource([[("busy", n) for n in range(10, 9_999)]], [1]), None, "busy")
    busy = busy.assign_timestamps_and_watermarks(strategy)
    run = started(MODES[mode](quiet, Ask(service), LONG).union(busy).process(WithWatermark()))

    def watermark():
        run.clock.advance(700)
        return run.step()[-1][2]

    for _ in range(5):
        assert watermark() == START, "the stream counts while an answer is to come"
    service.allow(("asked", 1))
    while watermark() < 10:
        pass
    assert (("asked", 1), 1, START) in run.records


# ------------------------------------------------------------------------------------------------- checkpoints


@pytest.mark.parametrize("mode", MODES)
def test_what_is_in_flight_is_in_the_checkpoint_and_asked_again(mode, started):
    service = Service(gate=allowed)
    with tempfile.TemporaryDirectory() as directory:
        stream = environment(checkpoints=True).from_collection([[n] for n in range(5)])
        stream = stream.map(lambda record: (record[0],))
        run = started(MODES[mode](stream, Ask(service), LONG), directory)
        service.allow((1,))
        run.step(3)
        step_until(run, lambda: (1,) in service.answered)
        plan = run.checkpoint(1, 0)
        kept = list(run.records)
        run.step(2)  # lost with the attempt
        del run.records[len(kept) :]
        run.attempt += 1
        asked_before = Counter(service.asked)
        run.deploy(plan)
        service.allow(*[(n,) for n in range(5)])
        while not run.finished:
            run.step()
    assert sorted(run.records) == [(n,) for n in range(5)]
    again = Counter(service.asked) - asked_before
    assert (0,) in again and (2,) in again, "they were in flight"
    assert ((1,) in again) is ((1,) not in kept), "only what had not left"


class Spoils(Ask):
    """Changes its record before it makes the request."""

    async def async_invoke(self, value):
        value.append("spoilt")
        await SERVICES[self.service_name].ask(value[0])
        return [tuple(value)]


def test_the_record_is_kept_as_it_came_whatever_the_function_does_to_it(started):
    service = Service(gate=allowed)
    with tempfile.TemporaryDirectory() as directory:
        stream = environment(checkpoints=True).from_collection([[1]])
        run = started(AsyncDataStream.ordered_wait(stream, Spoils(service), LONG), directory)
        run.step()
        step_until(run, lambda: service.asked == [1])
        plan = run.checkpoint(1)
        run.attempt += 1
        run.deploy(plan)
        service.allow(1)
        while not run.finished:
            run.step()
    assert run.records == [(1, "spoilt")]
    assert service.asked == [1, 1]


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (2, 2)])
@pytest.mark.parametrize("mode", MODES)
def test_what_is_in_flight_is_spread_over_another_parallelism(mode, before, after, started):
    service = Service(gate=allowed)

    def program(parallelism):
        env = environment(checkpoints=True).set_max_parallelism(8)
        asked = MODES[mode](env.from_collection(range(12)).uid("numbers"), Ask(service), LONG, 4)
        return asked.uid("asked").set_parallelism(parallelism)

    with tempfile.TemporaryDirectory() as directory:
        run = started(program(before), directory)
        run.step(4 * before)
        step_until(run, lambda: len(service.asked) == 4 * before)
        run.checkpoint(1, 0)
        run.engine.shutdown()
        service.most = 0
        service.allow(*range(12))
        graph = graph_of(program(after))
        again = Run(graph, directory=directory)
        again.deploy(plan_restore(graph, run.metadata, directory, allow_non_restored_state=False))
        while not again.finished:
            again.step()
        again.close()
    assert sorted(again.records) == list(range(12))
    assert service.most <= 4 * after, "also those that are asked again keep to the capacity"


# ----------------------------------------------------------------------------------------------------- the end


def test_at_the_end_of_the_input_epochs_and_checkpoints_go_on_until_all_answers_are_there(started):
    service = Service(gate=allowed)
    with tempfile.TemporaryDirectory() as directory:
        run = started(
            AsyncDataStream.ordered_wait(environment(checkpoints=True).from_collection([1, 2]), Ask(service), LONG),
            directory,
        )
        run.step()
        step_until(run, lambda: len(service.asked) == 2)
        assert not run.finished
        plan = run.checkpoint(1)
        run.attempt += 1
        run.deploy(plan)
        service.allow(1, 2)
        while not run.finished:
            run.step()
    assert run.records == [1, 2]
    assert Counter(service.asked) == {1: 2, 2: 2}


def test_at_the_end_of_the_input_a_pause_before_an_attempt_ends(started):
    def refuse_once(value):
        if service.asked.count(value) == 1:
            raise ConnectionError("not yet")
        return [value]

    service = Service(answer=refuse_once)
    hour = AsyncRetryStrategy.fixed_delay(1, 3_600_000, None, has_exception_predicate)
    stream = environment().from_collection([1, 2])
    run = started(AsyncDataStream.ordered_wait_with_retry(stream, Ask(service), Time.hours(2), hour))
    subtasks = run.engine.hosts[0].subtasks.values()
    (operator,) = (o for subtask in subtasks for o in subtask.operators if isinstance(o, AsyncWaitOperator))
    run.step(1)
    step_until(run, lambda: operator.requests is not None and operator.requests.pause_count == 1)
    service.answer = lambda value: [value]
    while not run.finished:
        run.step()
    assert run.records == [1, 2]
