"""Records that a function cannot process: they fail the job, are left out, or become dead letters."""

from __future__ import annotations

import pytest

from ekorn.common import Configuration, RestartStrategies, Time, Types, WatermarkStrategy
from ekorn.common.watermark_strategy import TimestampAssigner
from ekorn.datastream import (
    AsyncDataStream,
    AsyncFunction,
    BroadcastProcessFunction,
    CoMapFunction,
    DeadLetter,
    KeyedProcessFunction,
    OnRecordError,
    ProcessFunction,
    SinkFunction,
    StreamExecutionEnvironment,
)
from ekorn.datastream.connectors.number_seq import NumberSequenceSource
from ekorn.datastream.state import MapStateDescriptor, ValueStateDescriptor
from ekorn.datastream.window import TumblingEventTimeWindows
from ekorn.errors import InvalidProgramError, JobExecutionError
from ekorn.storage.long_texts import LONGEST
from ekorn.testing.local_run import collect_locally, on_local_engine

POISON = 13
RECORDS = [1, POISON, 2, POISON, 3]


def picky(value):
    if value == POISON:
        raise ValueError("unlucky")
    return value


class Picky(ProcessFunction):
    def process_element(self, value, ctx):
        yield picky(value)


class PickyCount(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield picky(value)
        yield self.count.value()


class PickyPair(CoMapFunction):
    def map1(self, value):
        return picky(value)

    def map2(self, value):
        return None


class PickyRules(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield picky(value)

    def process_broadcast_element(self, value, ctx):
        picky(value)


class AsTimestamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value


def environment(action="fail", limit=None):
    configuration = Configuration()
    configuration.set_string("ekorn.on-record-error", action)
    if limit is not None:
        configuration.set_string("ekorn.on-record-error.limit", str(limit))
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)


def windows(stream):
    timed = stream.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(AsTimestamp())
    )
    keyed = timed.key_by(lambda value: 0).window(TumblingEventTimeWindows.of(Time.milliseconds(100)))
    return keyed.reduce(lambda a, b: picky(b) and a + b)


def rules(stream):
    nothing = stream.get_execution_environment().from_collection([POISON])
    return stream.connect(nothing.broadcast(MapStateDescriptor("rules", Types.INT(), Types.INT()))).process(
        PickyRules()
    )


OPERATORS = {
    "map": (lambda stream: stream.map(picky), [1, 2, 3]),
    "filter": (lambda stream: stream.filter(lambda value: picky(value) > 1), [2, 3]),
    "flat_map": (lambda stream: stream.flat_map(lambda value: [picky(value)] * 2), [1, 1, 2, 2, 3, 3]),
    "a builtin": (lambda stream: stream.map(str).map({"1": 1, "2": 2, "3": 3}.__getitem__), [1, 2, 3]),
    "process": (lambda stream: stream.process(Picky()), [1, 2, 3]),
    "keyed process": (lambda stream: stream.key_by(lambda v: 0).process(PickyCount()), [1, 1, 2, 3, 3, 5]),
    "reduce": (lambda stream: stream.key_by(lambda v: 0).reduce(lambda a, b: picky(b) and a + b), [1, 3, 6]),
    "a window": (windows, [6]),
    "co-map": (lambda stream: stream.connect(stream).map(PickyPair()), [1, 2, 3]),
    "broadcast": (rules, [1, 2, 3]),
    "a key selector": (lambda stream: stream.map(lambda v: v).key_by(picky).map(lambda v: v), [1, 2, 3]),
    "a key selector behind a source": (lambda stream: stream.key_by(picky).map(lambda v: v), [1, 2, 3]),
    "a partitioner": (
        lambda stream: (
            stream.map(lambda v: v).partition_custom(lambda k, n: picky(k) % n, lambda v: v).map(lambda v: v)
        ),
        [1, 2, 3],
    ),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_a_record_that_fails_is_skipped(name):
    build, expected = OPERATORS[name]
    assert collect_locally(build(environment("skip").from_collection(RECORDS))) == expected


@pytest.mark.parametrize("name", OPERATORS)
def test_without_the_option_the_job_fails(name):
    with pytest.raises(JobExecutionError, match=r"unlucky|KeyError"):
        collect_locally(OPERATORS[name][0](environment().from_collection(RECORDS)))


def test_a_dead_letter_holds_the_record_and_the_error():
    env = environment()
    stream = env.from_collection(RECORDS).map(picky).name("choose").uid("u1").on_record_error("dead-letter")
    first, second = collect_locally(stream.get_dead_letters())
    assert isinstance(first, DeadLetter)
    assert (first.record, first.operator, first.uid, first.subtask) == (POISON, "choose", "u1", 0)
    assert first.error == "ValueError: unlucky"
    assert "in picky" in first.traceback and first.traceback.endswith("ValueError: unlucky")
    assert first.timestamp is None and first.failed_at > 1_600_000_000_000
    assert second.record == POISON


def test_the_error_of_a_skipped_record_is_cut():
    def long_winded(value):
        raise ValueError("x" * 1_000_000)

    stream = environment().from_collection([1]).map(long_winded).on_record_error("dead-letter")
    (letter,) = collect_locally(stream.get_dead_letters())
    assert letter.error.startswith("ValueError: xxx") and "characters are left out" in letter.error
    assert len(letter.error) < 2 * LONGEST


def test_the_good_records_go_on_beside_the_dead_letters():
    env = environment()
    stream = env.from_collection(RECORDS).map(picky).on_record_error(OnRecordError.DEAD_LETTER)
    both = stream.map(str).union(stream.get_dead_letters().map(lambda letter: f"dead {letter.record}"))
    assert sorted(collect_locally(both)) == ["1", "2", "3", "dead 13", "dead 13"]


def test_each_operator_of_a_chain_decides_about_its_own_errors():
    env = environment()
    stream = env.from_collection(RECORDS).map(lambda v: v).on_record_error("skip").map(picky)
    with pytest.raises(JobExecutionError, match="unlucky"):
        collect_locally(stream)
    stream = env.from_collection(RECORDS).map(picky).on_record_error("skip").map(lambda v: 1 // (v - 2))
    with pytest.raises(JobExecutionError, match="ZeroDivisionError"):
        collect_locally(stream)
    stream = env.from_collection(RECORDS).map(picky).on_record_error("skip").map(lambda v: 1 // (v - 2))
    assert collect_locally(stream.on_record_error("skip")) == [-1, 1]


def test_an_environment_collects_the_dead_letters_of_all_operators():
    env = environment("dead-letter")
    env.from_collection(RECORDS).map(picky).name("first").map(lambda v: 1 // (v - 2)).name("second").print()
    letters = env.get_dead_letters().map(lambda letter: (letter.operator, letter.record))
    assert sorted(collect_locally(letters)) == [("first", 13), ("first", 13), ("second", 2)]


def test_dead_letters_that_nobody_reads_are_refused():
    env = environment("dead-letter")
    env.from_collection(RECORDS).map(picky).print()
    with pytest.raises(InvalidProgramError, match=r"nothing reads the dead letters of operator.*get_dead_letters"):
        env.execute()


class Broken(SinkFunction):
    written: list[int] = []

    def invoke(self, value, context):
        self.written.append(picky(value))


def test_a_sink_skips_records_too():
    env = environment("skip")
    env.from_collection(RECORDS).add_sink(Broken())
    with on_local_engine():
        env.execute()


def test_the_limit_fails_the_job_with_the_last_error():
    assert collect_locally(environment("skip", limit=2).from_collection(RECORDS).map(picky)) == [1, 2, 3]
    with pytest.raises(JobExecutionError) as failed:
        collect_locally(environment("skip", limit=1).from_collection(RECORDS).map(picky))
    said = str(failed.value)
    assert "operator 'Map' has skipped 1 record(s), which is the limit" in said
    assert "cannot process record 13: ValueError: unlucky; raise ekorn.on-record-error.limit" in said


def test_what_no_record_is_to_blame_for_fails_the_job():
    def full(value):
        raise MemoryError

    class Unkeyed(ProcessFunction):
        def process_element(self, value, ctx):
            yield ctx.timer_service().register_event_time_timer(1)

    with pytest.raises(JobExecutionError, match="MemoryError"):
        collect_locally(environment("skip").from_collection([1]).map(full))
    with pytest.raises(JobExecutionError):
        collect_locally(environment("skip").from_collection([1]).process(Unkeyed()))


def test_skipped_records_are_counted():
    env = environment("skip")
    env.from_collection(RECORDS).map(picky).name("choose").print()
    with on_local_engine():
        client = env.execute_async()
        client.get_job_execution_result().result()
    assert client.get_metrics()["choose.numRecordErrors"] == 2


class Ask(AsyncFunction):
    async def async_invoke(self, value):
        return [value]


def test_a_wrong_action_and_an_operator_without_records_are_refused():
    env = environment()
    with pytest.raises(ValueError, match="takes 'fail', 'skip' or 'dead-letter', got 'ignore'"):
        env.from_collection([1]).map(picky).on_record_error("ignore")
    requests = AsyncDataStream.ordered_wait(env.from_collection([1]), Ask(), Time.seconds(1))
    with pytest.raises(InvalidProgramError, match="sends asynchronous requests; handle their errors in its function"):
        requests.on_record_error("skip")


CRASHES: list[int] = []


def crash_once(value):
    if value == 800 and not CRASHES:
        CRASHES.append(value)
        raise OSError("lost")
    return value


def test_after_a_restart_every_dead_letter_is_there_once():
    CRASHES.clear()
    env = environment().enable_checkpointing(10)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 0))
    numbers = env.from_source(NumberSequenceSource(1, 1000), WatermarkStrategy.no_watermarks(), "numbers")
    checked = numbers.map(crash_once).map(lambda n: 1 // (n % 100)).on_record_error("dead-letter")
    dead = collect_locally(checked.get_dead_letters())
    assert sorted(letter.record for letter in dead) == list(range(100, 1001, 100))
    assert CRASHES == [800]


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def test_a_record_is_skipped_although_its_exception_has_no_text():
    def silent(value):
        if value == POISON:
            raise Mute
        return value

    assert collect_locally(environment("skip").from_collection(RECORDS).map(silent)) == [1, 2, 3]
