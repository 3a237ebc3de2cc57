"""Loops: exact results, and no record in the loop is lost or repeated when the job fails."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.common import Types, WatermarkStrategy
from ekorn.common.job_status import JobStatus
from ekorn.common.watermark_strategy import TimestampAssigner
from ekorn.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from ekorn.datastream.functions import CoMapFunction, KeyedProcessFunction, ProcessFunction
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.errors import InvalidProgramError, UnsupportedOperationError
from ekorn.testing.local_run import collect_locally, on_local_engine
from ekorn.testing.scripted import Crash, DriverDied, Script, run_scripted
from tests.conformance.disturbed_jobs import (
    POINTS,
    checkpoints,
    counted,
    environment,
    folder,
    lost,
    newest_checkpoint,
    runs,
    scripts,
    source,
)
from tests.conformance.external_system import ExternalSystem, TransactionalSink
from tests.examples_by_profile import examples

pytestmark = pytest.mark.usefixtures("silent_restarts")

NUMBERS = list(range(1, 13))


def collatz_steps(n):
    """Return the number of steps from n to 1: the model."""
    steps = 0
    while n != 1:
        n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
    return steps


def step(record):
    start, now, steps = record
    if now == 1:
        return record
    return start, (now // 2 if now % 2 == 0 else 3 * now + 1), steps + 1


def done(record):
    return record[1] == 1


def collatz(stream, feedback=lambda s: s):
    """Emit (start, 1, steps) for each number; 9 takes 19 rounds."""
    loop = stream.map(lambda n: (n, n, 0)).uid("begin").iterate(max_wait_time_millis=20)
    stepped = loop.map(step).uid("step")
    loop.close_with(feedback(stepped.filter(lambda r: not done(r))))
    return stepped.filter(done)


class Visits(KeyedProcessFunction):
    """Counts the records of each key: keyed state inside a loop."""

    def open(self, runtime_context):
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.INT()))

    def process_element(self, value, ctx):
        seen = (self.seen.value() or 0) + 1
        self.seen.update(seen)
        yield value, seen


def visits(stream):
    """Send each key round until it has forty visits; the record of the fortieth visit leaves the loop."""
    loop = stream.map(lambda n: n % 3).iterate(max_wait_time_millis=20)
    counted = loop.key_by(lambda k: k).process(Visits())
    loop.close_with(counted.filter(lambda r: r[1] < 40).map(lambda r: r[0]).set_parallelism(1))
    return counted.filter(lambda r: r[1] >= 40)


def apart(stream):
    stream.get_execution_environment().disable_operator_chaining()
    return stream


PROGRAMS = {
    "in one chain": collatz,
    "across exchanges": lambda s: collatz(apart(s)),
    "spread anew with every round": lambda s: collatz(s, lambda f: f.rebalance()),
    "fed back by key": lambda s: collatz(s, lambda f: f.key_by(lambda r: r[0])),
}
EXPECTED = [(n, 1, collatz_steps(n)) for n in NUMBERS]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("parallelism", [1, 2])
def test_records_go_round_until_they_are_let_out(name, parallelism):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    found = collect_locally(PROGRAMS[name](env.from_collection(NUMBERS).map(lambda n: n)))
    assert counted(found) == counted(EXPECTED)


@pytest.mark.parametrize("name", PROGRAMS)
@given(runs=runs, script=scripts, parallelism=st.integers(1, 3))
@settings(max_examples=examples(5))
def test_a_crash_loses_and_repeats_nothing_of_what_goes_round(name, runs, script, parallelism):
    env, system = environment(parallelism=parallelism), ExternalSystem()
    result = PROGRAMS[name](source(env, runs, records=NUMBERS)).uid("program")
    result.add_sink(TransactionalSink(system)).uid("sink")
    run = run_scripted(result, script)
    assert run.status is JobStatus.FINISHED
    assert counted(system.records) == counted(run.records) == counted(EXPECTED)


@pytest.mark.parametrize("name", PROGRAMS)
@given(
    runs=st.lists(runs, min_size=4, max_size=4),
    deaths=st.lists(st.builds(Crash, st.sampled_from(POINTS), st.integers(1, 30)), min_size=1, max_size=3),
    checkpoints=checkpoints,
    parallelisms=st.lists(st.integers(1, 4), min_size=4, max_size=4),
    lost=lost,
)
@settings(max_examples=examples(4))
def test_a_new_driver_at_another_parallelism_takes_over_what_goes_round(
    *, name, runs, deaths, checkpoints, parallelisms, lost
):
    system = ExternalSystem()
    with folder() as directory:
        newest = None
        for death, run, parallelism in zip([*deaths, None], runs, parallelisms, strict=False):
            env = environment(directory, parallelism)
            env.set_max_parallelism(8)
            result = PROGRAMS[name](source(env, run, records=NUMBERS)).uid("program")
            result.add_sink(TransactionalSink(system)).uid("sink")
            script = Script(checkpoints, [death] if death else [], lost, driver_dies=True)
            try:
                finished = run_scripted(env, script, **({"restore_path": newest} if newest else {}))
                assert finished.status is JobStatus.FINISHED
                break
            except DriverDied:
                newest = newest_checkpoint(directory) or newest
    assert counted(system.records) == counted(EXPECTED)


def test_keyed_state_inside_a_loop():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    found = collect_locally(visits(env.from_collection([0, 1, 2])))
    assert sorted(found) == [(0, 40), (1, 40), (2, 40)]


# ------------------------------------------------------------------------------------------ the forms of a loop


def local(parallelism=1):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    return env


def test_the_example_of_the_reference():
    loop = local().from_collection([3, 1]).iterate(10)
    less = loop.map(lambda x: x - 1)
    assert loop.close_with(less.filter(lambda x: x > 0)) is not None
    assert collect_locally(less.filter(lambda x: x <= 0)) == [0, 0]


def test_a_loop_as_one_function():
    def body(stream):
        less = stream.map(lambda x: x - 2)
        return less.filter(lambda x: x > 0), less.filter(lambda x: x <= 0)

    # 5 -> 3 -> 1 -> -1; 4 -> 2 -> 0
    assert sorted(collect_locally(local().from_collection([5, 4]).iterate_with(body, 10))) == [-1, 0]


class Thousands(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value * 1000


class Stamp(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp()


class Apart(CoMapFunction):
    """Receives text from outside and numbers from the loop."""

    def map1(self, value):
        return int(value)

    def map2(self, value):
        return value - 1


def test_what_is_fed_back_may_have_a_type_of_its_own():
    loop = local().from_collection(["3", "1"], Types.STRING()).iterate(10).with_feedback_type(Types.INT())
    numbers = loop.map(Apart(), Types.INT())
    loop.close_with(numbers.filter(lambda x: x > 0))
    assert sorted(collect_locally(numbers)) == [0, 0, 1, 1, 2, 3]


def test_two_loops_one_behind_the_other():
    first = local().from_collection([3]).iterate(10)
    a = first.map(lambda x: x - 1)
    first.close_with(a.filter(lambda x: x > 0))
    second = a.iterate(10)
    b = second.map(lambda x: x + 10)
    second.close_with(b.filter(lambda x: x < 20))
    # the first loop emits 2, 1 and 0; each goes round in the second loop until it is 20 or more
    assert sorted(collect_locally(b.filter(lambda x: x >= 20))) == [20, 21, 22]


def test_a_loop_inside_a_loop():
    outer = local().from_collection([2]).iterate(60)
    inner = outer.map(lambda x: (x, 3)).iterate(20)
    turned = inner.map(lambda r: (r[0], r[1] - 1))
    inner.close_with(turned.filter(lambda r: r[1] > 0))
    left = turned.filter(lambda r: r[1] == 0).map(lambda r: r[0] - 1)
    outer.close_with(left.filter(lambda x: x > 0))
    assert collect_locally(left) == [1, 0]


def test_times_are_kept_on_the_way_round():
    stream = (
        local()
        .from_collection([3])
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Thousands())
        )
    )
    loop = stream.iterate(10)
    less = loop.map(lambda x: x - 1)
    loop.close_with(less.filter(lambda x: x > 0))
    assert collect_locally(less.process(Stamp())) == [(2, 3000), (1, 3000), (0, 3000)]


def test_a_loop_without_a_wait_goes_on_until_it_is_cancelled():
    loop = local().from_collection([1]).iterate()
    loop.close_with(loop.map(lambda x: x + 1))
    with on_local_engine(), loop.execute_and_collect() as numbers:
        assert [next(numbers) for _ in range(1000)] == list(range(1, 1001))


# ---------------------------------------------------------------------------------------------------- what is refused


def test_a_loop_must_be_closed():
    loop = local().from_collection([1]).iterate(10)
    with pytest.raises(InvalidProgramError, match=r"never closed.*close_with"):
        collect_locally(loop.map(lambda x: x))


def test_a_loop_is_closed_once():
    loop = local().from_collection([1]).iterate(10)
    body = loop.map(lambda x: x)
    loop.close_with(body)
    with pytest.raises(InvalidProgramError, match=r"already closed.*union"):
        loop.close_with(body)


def test_what_is_fed_back_comes_from_the_loop():
    env = local()
    loop = env.from_collection([1]).iterate(10)
    with pytest.raises(UnsupportedOperationError, match="does not originate from this loop"):
        loop.close_with(env.from_collection([2]).map(lambda x: x))


def test_what_is_fed_back_has_the_parallelism_of_the_input():
    loop = local(2).from_sequence(1, 10).iterate(10)
    with pytest.raises(UnsupportedOperationError, match=r"parallelism of the loop's input, 2.*has 3"):
        loop.close_with(loop.map(lambda x: x, Types.LONG()).set_parallelism(3))


def test_what_is_fed_back_has_the_type_of_the_input():
    loop = local().from_collection([1], Types.INT()).iterate(10)
    with pytest.raises(InvalidProgramError, match="with_feedback_type"):
        loop.close_with(loop.map(str, Types.STRING()))


def test_the_inputs_of_a_loop_are_not_keyed_together():
    loop = local().from_collection([1]).iterate(10).with_feedback_type(Types.INT())
    with pytest.raises(UnsupportedOperationError, match="before iterate"):
        loop.key_by(lambda x: x, lambda x: x)


def test_batch_mode_has_no_loops():
    env = local()
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    loop = env.from_collection([1]).iterate(10)
    loop.close_with(loop.filter(lambda x: x > 1))
    with pytest.raises(InvalidProgramError, match="BATCH mode does not support loops"):
        collect_locally(loop)


@pytest.mark.parametrize("wait", [-1, 1.5, True, "10"])
def test_the_wait_is_a_number_of_milliseconds(wait):
    with pytest.raises(ValueError, match="milliseconds"):
        local().from_collection([1]).iterate(wait)
