"""Chains as users see them: results do not depend on the shape of the chain, even if operators change records."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.common import Types, WatermarkStrategy
from ekorn.common.watermark_strategy import TimestampAssigner
from ekorn.datastream import OutputTag, StreamExecutionEnvironment
from ekorn.datastream.functions import KeySelector, MapFunction, Partitioner, ProcessFunction
from ekorn.testing.local_run import collect_locally, on_local_engine
from tests.examples_by_profile import examples


@pytest.fixture
def env():
    return StreamExecutionEnvironment.get_execution_environment()


def test_a_record_goes_through_the_whole_chain_before_the_next_starts(env, capsys):
    def seen(name):
        def look(value):
            print(name, value)
            return value

        return look

    collect_locally(env.from_collection([1, 2]).map(seen("first")).map(seen("second")))
    assert capsys.readouterr().out.splitlines() == ["first 1", "second 1", "first 2", "second 2"]


@pytest.mark.parametrize("length", [1, 5, 19, 20, 21, 40, 120])
def test_chains_of_any_length_run(env, length):
    stream = env.from_collection([0, 1])
    for _ in range(length):
        stream = stream.flat_map(lambda v: [v + 1])
    assert collect_locally(stream) == [length, length + 1]


def test_long_chains_of_every_operator_run(env):
    stream = env.from_collection([(n, n) for n in range(5)], Types.TUPLE([Types.INT(), Types.INT()]))
    for _ in range(15):
        stream = stream.filter(lambda v: v[0] >= 0).flat_map(lambda v: [v]).process(Same()).map(lambda v: v)
    assert collect_locally(stream) == [(n, n) for n in range(5)]


class Same(ProcessFunction):
    def process_element(self, value, ctx):
        yield value


STEPS = {
    "double": (lambda s: s.map(lambda v: v * 2), lambda vs: [v * 2 for v in vs]),
    "odd": (lambda s: s.filter(lambda v: v % 3), lambda vs: [v for v in vs if v % 3]),
    "repeat": (lambda s: s.flat_map(lambda v: [v, v + 1]), lambda vs: [x for v in vs for x in (v, v + 1)]),
    "same": (lambda s: s.process(Same()), lambda vs: vs),
    "none": (lambda s: s.flat_map(lambda v: None if v % 2 else [v]), lambda vs: [v for v in vs if v % 2 == 0]),
    "exchange": (lambda s: s.rebalance(), lambda vs: vs),
    "timestamps": (
        lambda s: s.assign_timestamps_and_watermarks(
            WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Value())
        ),
        lambda vs: vs,
    ),
    "new chain": (lambda s: s.map(lambda v: v).start_new_chain(), lambda vs: vs),
}


class Value(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value


@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=25), st.lists(st.integers(0, 50), max_size=5))
@settings(max_examples=examples(40))
def test_any_chain_gives_what_its_steps_give_one_after_another(names, values):
    stream, expected = StreamExecutionEnvironment().from_collection(values, Types.LONG()), values
    for name in names:
        if name == "repeat" and names.index(name) != 0:
            continue  # one is enough: it doubles the records
        step, plain = STEPS[name]
        stream, expected = step(stream), plain(expected)
    if names and names[-1] == "exchange":
        stream = stream.map(lambda v: v)
    assert collect_locally(stream) == expected


# ------------------------------------------------------------------------------------------- records are values


class Spoil(MapFunction):
    """Changes its input, and what it emitted before."""

    def open(self, runtime_context):
        self.given = []

    def map(self, value):
        for before in self.given:
            before.append("changed later")
        value.append("changed")
        self.given.append(value)
        return value


@pytest.mark.parametrize("between", [lambda s: s, lambda s: s.rebalance(), lambda s: s.start_new_chain()])
def test_what_one_consumer_does_to_a_record_no_other_sees(env, between):
    source = env.from_collection([[1], [2]]).map(lambda v: v)
    spoiled = between(source.map(lambda v: v)).map(Spoil()).map(lambda v: ("spoiled", len(v)))
    clean = source.map(lambda v: v).map(lambda v: ("clean", len(v)))
    found = collect_locally(spoiled.union(clean, source.map(lambda v: ("clean", len(v)))))
    assert sorted(found) == 4 * [("clean", 1)] + 2 * [("spoiled", 2)]


def test_what_a_function_does_to_a_record_it_has_sent_changes_nothing_behind_an_exchange(env):
    stream = env.from_collection([[1], [2], [3]]).map(Spoil()).rebalance().map(tuple)
    assert collect_locally(stream) == [(1, "changed"), (2, "changed"), (3, "changed")]


def test_two_operators_with_one_function_object_have_each_their_own(env):
    class Counting(MapFunction):
        seen = 0

        def map(self, value):
            self.seen += 1
            return self.seen

    one = Counting()
    assert collect_locally(env.from_collection(["a", "b", "c"]).map(one).map(one).rebalance().map(one)) == [1, 2, 3]


def test_functions_that_close_over_one_list_have_each_their_own(env):
    seen = []

    def note(value):
        seen.append(value)
        return value

    assert collect_locally(env.from_collection([1, 2]).map(note).map(lambda v: (v, len(seen)))) == [(1, 0), (2, 0)]
    assert seen == []


# --------------------------------------------------------------------------------------------- shapes of graphs


EVEN, BIG = OutputTag("even", Types.LONG()), OutputTag("big")


class Sort(ProcessFunction):
    def process_element(self, value, ctx):
        if value % 2 == 0:
            yield EVEN, value
        if value > 5:
            yield BIG, [value]
            yield OutputTag("big"), [value, "again"]
        yield value


def test_side_outputs_go_their_own_way_and_a_tag_is_its_id(env):
    main = env.from_collection(range(8), Types.LONG()).process(Sort())
    evens = main.get_side_output(OutputTag("even", Types.LONG())).map(lambda v: ("even", v))
    bigs = main.get_side_output(BIG).rebalance().map(lambda v: ("big", *v))
    found = collect_locally(main.map(lambda v: ("main", v)).union(evens, bigs))
    assert sorted(found, key=repr) == sorted(
        [("main", v) for v in range(8)]
        + [("even", v) for v in (0, 2, 4, 6)]
        + [("big", 6), ("big", 6, "again"), ("big", 7), ("big", 7, "again")],
        key=repr,
    )


def test_a_side_output_that_nobody_reads_is_dropped_and_one_never_written_is_empty(env):
    main = env.from_collection(range(4), Types.LONG()).process(Sort())
    assert collect_locally(main) == [0, 1, 2, 3]
    main = env.from_collection([1], Types.LONG()).process(Sort())
    assert collect_locally(main.get_side_output(EVEN)) == []


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_a_stream_united_with_itself_has_everything_twice(env, parallelism):
    env.set_parallelism(parallelism)
    stream = env.from_collection(["a", "b"]).map(lambda v: v)
    assert sorted(collect_locally(stream.union(stream))) == ["a", "a", "b", "b"]
    source = env.from_collection(["a"])
    assert collect_locally(source.union(source, source).map(str.upper)) == ["A", "A", "A"]


def test_project_takes_the_fields_in_the_order_given(env):
    typed = env.from_collection([(1, "a", 2.5)], Types.TUPLE([Types.INT(), Types.STRING(), Types.DOUBLE()]))
    assert collect_locally(typed.project(2, 0, 2)) == [(2.5, 1, 2.5)]


def test_several_sinks_each_get_every_record(env, capsys):
    stream = env.from_collection([1, 2]).map(lambda v: v + 1)
    stream.print("one")
    stream.rebalance().print("two")
    stream.map(lambda v: v * 10).print()
    with on_local_engine():
        env.execute()
    assert sorted(capsys.readouterr().out.splitlines()) == ["20", "30", "one> 2", "one> 3", "two> 2", "two> 3"]


class Opened(KeySelector, Partitioner):
    """Counts how often it was opened and closed."""

    log = []

    def open(self, runtime_context):
        self.subtasks = runtime_context.get_number_of_parallel_subtasks()
        type(self).log.append("open")

    def close(self):
        type(self).log.append("close")

    def get_key(self, value):
        assert self.subtasks
        return value % 2

    def partition(self, key, num_partitions):
        assert self.subtasks
        return key % num_partitions


def test_key_selectors_and_partitioners_are_opened_and_closed(env):
    env.set_parallelism(2)
    Opened.log.clear()
    stream = env.from_collection(range(6)).partition_custom(Opened(), Opened()).map(lambda v: v)
    found = collect_locally(stream.key_by(Opened()).reduce(lambda a, b: a + b))
    assert sorted(found)[-2:] == [6, 9]
    assert Opened.log.count("open") == Opened.log.count("close") > 0
