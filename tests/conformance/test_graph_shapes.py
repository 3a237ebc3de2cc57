"""Deep, wide and tangled graphs: exact results, and every subtask runs once in every epoch."""

from collections import Counter

import pytest

from ekorn.common import Time, WatermarkStrategy
from ekorn.datastream import (
    AsyncDataStream,
    AsyncFunction,
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
    StreamExecutionEnvironment,
)
from ekorn.datastream.functions import JoinFunction, ProcessJoinFunction
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.datastream.window import TumblingEventTimeWindows
from ekorn.slot.host import SlotHost
from ekorn.testing.scripted import ScriptedSource, run_scripted


@pytest.fixture(autouse=True)
def once_an_epoch(monkeypatch):
    """Count the runs of each subtask in each epoch; check the counts after the test."""
    runs = Counter()
    plain = SlotHost.run

    def run(host, subtask, attempt, order, *rest):
        runs[order.number, subtask] += 1
        return plain(host, subtask, attempt, order, *rest)

    monkeypatch.setattr(SlotHost, "run", run)
    yield runs
    epochs = {number for number, _ in runs}
    subtasks = {subtask for _, subtask in runs}
    assert len(epochs) > 1, "the input came in several epochs"
    assert set(runs.values()) == {1}
    assert len(runs) == len(epochs) * len(subtasks)


NUMBERS = list(range(40))


def environment(parallelism=2):
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)


def numbers(env, records=NUMBERS, name="numbers"):
    return env.from_source(ScriptedSource([records], [15]), WatermarkStrategy.no_watermarks(), name)


def results(stream):
    """Return the records of a stream, and its job graph."""
    graph = stream.get_execution_environment().job_graph()
    return run_scripted(stream).records, graph


def plus_one(value):
    return value + 1


# --------------------------------------------------------------------------------------------------------- deep


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_line_of_forty_vertices(parallelism):
    stream = numbers(environment(parallelism))
    for _ in range(40):
        stream = stream.map(plus_one).rebalance()
    found, graph = results(stream.map(plus_one))
    assert len(graph.levels) > 40
    assert sorted(found) == [n + 41 for n in NUMBERS]


def test_a_line_of_forty_vertices_without_chaining():
    env = environment(1).disable_operator_chaining()
    stream = numbers(env)
    for _ in range(40):
        stream = stream.map(plus_one)
    found, graph = results(stream)
    assert len(graph.levels) == len(graph.vertices) > 40
    assert found == [n + 40 for n in NUMBERS]


class Rotates(KeyedProcessFunction):
    """Adds the number of records of the key so far, so that every vertex has state."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", None))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value[0], value[1] + count


def test_thirty_keyed_vertices_one_behind_the_other():
    stream = numbers(environment(3)).map(lambda n: (n % 5, 0))
    for _ in range(30):
        stream = stream.key_by(lambda v: v[0]).process(Rotates())
    found, graph = results(stream)
    assert len(graph.levels) >= 30
    assert Counter(found) == Counter({(key, 30 * place): 1 for key in range(5) for place in range(1, 9)})


def test_hundreds_of_operators_in_one_chain():
    stream = numbers(environment(1))
    for n in range(300):
        stream = stream.map(plus_one) if n % 3 else stream.flat_map(lambda v: [v, v] if v % 7 == 0 and v > 320 else [v])
    found, graph = results(stream)
    assert len(graph.vertices) == 1
    expected = list(NUMBERS)
    for n in range(300):
        if n % 3:
            expected = [v + 1 for v in expected]
        else:
            expected = [w for v in expected for w in ([v, v] if v % 7 == 0 and v > 320 else [v])]
    assert found == expected


# ------------------------------------------------------------------------------------------------------ diamonds


def test_a_diamond():
    source = numbers(environment())
    left, right = source.map(lambda n: ("left", n)), source.filter(lambda n: n % 2 == 0).map(lambda n: ("right", n))
    found, _ = results(left.union(right.rebalance()).key_by(lambda v: v[0]).sum(1))
    assert max(v[1] for v in found if v[0] == "left") == sum(NUMBERS)
    assert max(v[1] for v in found if v[0] == "right") == sum(NUMBERS[::2])
    assert len(found) == 60


def test_diamonds_inside_diamonds():
    stream = numbers(environment(), NUMBERS[:20])
    for _ in range(6):
        left, right = stream.map(lambda n: n * 2), stream.rebalance().map(lambda n: n * 2 + 1)
        stream = left.union(right)
    found, graph = results(stream.map(lambda n: n))
    assert sorted(found) == list(range(20 * 64))
    assert len(graph.levels) >= 6


def test_a_branch_that_skips_many_levels():
    source = numbers(environment())
    deep = source
    for _ in range(12):
        deep = deep.map(plus_one).rebalance()
    found, graph = results(deep.union(source).map(lambda n: n))
    assert Counter(found) == Counter(NUMBERS) + Counter(n + 12 for n in NUMBERS)
    levels = [(graph.vertices[e.source].level, graph.vertices[e.target].level) for e in graph.exchanges]
    assert any(after - before > 10 for before, after in levels)


# ------------------------------------------------------------------------------------------- joins across levels


def timed(stream):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value[1])
    return stream.assign_timestamps_and_watermarks(strategy)


class Pair(JoinFunction):
    def join(self, first, second):
        return first[1], second[1]


class PairInTime(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left[1], right[1]


def test_joins_of_streams_from_different_levels():
    env = environment()
    near = timed(numbers(env).map(lambda n: (n % 4, n)))
    far = near
    for _ in range(5):
        far = far.rebalance().map(lambda v: v)
    joined = (
        near.join(far)
        .where(lambda v: v[0])
        .equal_to(lambda v: v[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .apply(Pair())
    )
    found, graph = results(joined.rebalance().union(far.map(lambda v: ("far", v[1]))).map(lambda v: v))
    pairs = [(a, b) for a in NUMBERS for b in NUMBERS if a % 4 == b % 4 and a // 10 == b // 10]
    assert Counter(found) == Counter(pairs) + Counter(("far", n) for n in NUMBERS)
    assert len(graph.levels) > 7


def test_an_interval_join_of_a_stream_with_its_own_past():
    env = environment(3)
    near = timed(numbers(env).map(lambda n: (n % 3, n)))
    far = near.rebalance().map(lambda v: v).rebalance().map(lambda v: v)
    joined = (
        near.key_by(lambda v: v[0])
        .interval_join(far.key_by(lambda v: v[0]))
        .between(Time.milliseconds(-6), Time.milliseconds(0))
        .process(PairInTime())
    )
    found, _ = results(joined)
    assert Counter(found) == Counter((n, n - back) for n in NUMBERS for back in (0, 3, 6) if n >= back)


# --------------------------------------------------------------------------------------------------------- wide


def test_a_union_of_sixty_streams():
    env = environment()
    streams = [numbers(env, [(k, n) for n in range(20)], f"source {k}") for k in range(60)]
    united = streams[0].union(*streams[1:]).key_by(lambda v: v[0]).sum(1)
    found, _ = results(united)
    assert {key: max(v[1] for v in found if v[0] == key) for key in range(60)} == dict.fromkeys(range(60), 190)
    assert len(found) == 1200


@pytest.mark.parametrize("chained", [True, False])
def test_a_hundred_sinks_of_one_source(chained, capsys):
    env = environment(2)
    source = numbers(env).map(lambda n: n)
    for k in range(100):
        branch = source if chained else source.rebalance()
        branch.filter(lambda n, k=k: n % 100 == k or n == 39).print(f"sink {k}")
    run_scripted(env)
    lines = [line.split("> ") for line in capsys.readouterr().out.splitlines()]
    found = Counter((name.split(":")[0], int(n)) for name, n in lines)
    expected = Counter({(f"sink {k}", 39): 1 for k in range(100)} | {(f"sink {k}", k): 1 for k in range(39)})
    assert found == expected


TAGS = [OutputTag(f"by {k}") for k in range(30)]


class Deals(ProcessFunction):
    def process_element(self, value, ctx):
        yield TAGS[value % 30], value
        yield value


def test_thirty_side_outputs_that_meet_again():
    dealt = numbers(environment()).process(Deals())
    sides = [dealt.get_side_output(tag).map(lambda n, k=k: (k, n)) for k, tag in enumerate(TAGS)]
    found, _ = results(sides[0].union(*sides[1:], dealt.map(lambda n: ("main", n))).rebalance().map(lambda v: v))
    assert Counter(found) == Counter((n % 30, n) for n in NUMBERS) + Counter(("main", n) for n in NUMBERS)


class Doubles(AsyncFunction):
    async def async_invoke(self, value):
        return [value * 2]


def test_every_kind_of_operator_in_one_tangle():
    env = environment()
    source = numbers(env)
    asked = AsyncDataStream.unordered_wait(source.rebalance(), Doubles(), Time.seconds(60))
    halves = source.split(lambda n: ["low" if n < 20 else "high"])
    low = halves.select("low").key_by(lambda n: n % 2).reduce(lambda a, b: a + b)
    united = asked.union(low.rebalance(), halves.select("high").map(lambda n: -n))
    found, graph = results(united.rebalance().map(lambda v: v).union(source).map(lambda v: v))
    sums = [sum(range(parity, n + 1, 2)) for parity in (0, 1) for n in range(parity, 20, 2)]
    expected = Counter(n * 2 for n in NUMBERS) + Counter(sums) + Counter(-n for n in range(20, 40)) + Counter(NUMBERS)
    assert Counter(found) == expected
    assert len(graph.levels) >= 4
