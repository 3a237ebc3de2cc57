"""`split` and `select`: the rules of Flink 1.x, worked out by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.common import Types
from ekorn.datastream import (
    OutputSelector,
    OutputTag,
    ProcessFunction,
    RuntimeExecutionMode,
    SplitStream,
    StreamExecutionEnvironment,
)
from ekorn.errors import InvalidProgramError, JobExecutionError, UnsupportedOperationError
from ekorn.testing.local_run import collect_locally, on_local_engine
from tests.examples_by_profile import examples


def environment(parallelism=1):
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)


def parity(value):
    return ["odd"] if value % 2 else ["even"]


class ByParity(OutputSelector):
    def open(self, runtime_context):
        self.names = {0: ("even",), 1: ("odd",)}

    def select(self, value):
        return self.names[value % 2]


@pytest.mark.parametrize("selector", [parity, ByParity()], ids=["function", "selector"])
@pytest.mark.parametrize(
    ("names", "expected"),
    [(("even",), [2, 4]), (("odd",), [1, 3]), (("even", "odd"), [1, 2, 3, 4]), (("neither",), [])],
)
def test_a_selection_has_the_records_of_its_names(selector, names, expected):
    numbers = environment().from_collection([1, 2, 3, 4]).split(selector)
    assert isinstance(numbers, SplitStream)
    assert collect_locally(numbers.select(*names)) == expected


def test_a_record_with_several_of_the_names_comes_once():
    numbers = environment().from_collection([1, 2]).split(lambda _: ["a", "b", "a"])
    assert collect_locally(numbers.select("b", "a", "a")) == [1, 2]


def test_a_record_without_a_name_is_in_no_selection_but_in_the_split_stream_itself():
    numbers = environment().from_collection([1, 2, 3]).split(lambda value: ["two"] if value == 2 else [])
    assert collect_locally(numbers.select("two")) == [2]
    assert collect_locally(numbers.map(lambda value: -value)) == [-1, -2, -3]


def test_several_selections_and_the_stream_itself_in_one_job(capsys):
    numbers = environment().from_collection([1, 2, 3]).split(parity)
    numbers.select("odd").print("odd")
    numbers.select("even").print("even")
    numbers.select("even", "odd").print("both")
    numbers.print("all")
    with on_local_engine():
        numbers.get_execution_environment().execute()
    lines = sorted(capsys.readouterr().out.split("\n"))
    expected = ["odd> 1", "odd> 3", "even> 2", *(f"{name}> {n}" for name in ("both", "all") for n in (1, 2, 3))]
    assert lines == sorted(["", *expected])


def test_what_one_selection_does_to_a_record_no_other_sees():
    def spoil(record):
        record.append("spoilt")
        return record

    lists = environment().from_collection([[1], [2]]).map(lambda record: record).split(lambda _: ["a", "b"])
    spoilt = lists.select("a").map(spoil)
    assert collect_locally(spoilt.union(lists.select("b"), lists.select("a", "b"), lists)).count([1, "spoilt"]) == 1


@given(
    st.lists(st.sets(st.sampled_from("abcd"))),
    st.sets(st.sampled_from("abcde"), min_size=1),
    st.sampled_from([1, 3]),
    st.booleans(),
)
@settings(max_examples=examples(15))
def test_select_is_a_filter(names_of, wanted, parallelism, batch):
    env = environment(parallelism)
    if batch:
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    records = list(enumerate(names_of))
    split = env.from_collection(records).rebalance().map(lambda r: r).split(lambda record: record[1])
    assert sorted(collect_locally(split.select(*wanted))) == [r for r in records if r[1] & wanted]


def test_a_union_is_split_and_a_partitioning_kept():
    env = environment(2)
    left, right = env.from_collection([1, 2]).map(lambda v: v), env.from_collection([3, 4]).map(lambda v: v)
    odd = left.union(right).split(parity).select("odd")
    assert sorted(collect_locally(odd.map(lambda v: v))) == [1, 3]
    keyed = env.from_collection([("a", 1), ("b", 2), ("a", 3)]).key_by(lambda pair: pair[0])
    chosen = keyed.split(lambda pair: [pair[0]]).select("a")
    assert collect_locally(chosen.map(lambda pair: pair[1])) == [1, 3]


def test_splitting_needs_no_exchange():
    env = environment(4)
    numbers = env.from_collection([1, 2]).map(lambda v: v).set_parallelism(3)
    numbers.split(parity).select("odd").map(lambda v: v).set_parallelism(3)
    assert [v.name for v in env.job_graph().vertices] == ["Source: Collection Source", "Map -> Split -> Map"]


def test_the_type_is_the_streams():
    numbers = environment().from_collection([1, 2], Types.INT()).split(parity)
    assert numbers.get_type() == numbers.select("odd").get_type() == Types.INT()


# ------------------------------------------------------------------------------------------------- what is refused


def test_a_split_is_not_split_again():
    numbers = environment().from_collection([1]).split(parity)
    with pytest.raises(InvalidProgramError, match="a split stream: it is already split"):
        numbers.split(parity)
    with pytest.raises(InvalidProgramError, match="a selected stream: it is already split"):
        numbers.select("odd").split(parity)
    assert isinstance(numbers.select("odd").map(lambda v: v).split(parity), SplitStream)


TAG = OutputTag("side")


class UsesTag(ProcessFunction):
    def process_element(self, value, ctx):
        yield value
        if value == 2:
            yield TAG, value


def test_side_outputs_and_splits_do_not_go_together():
    side = environment().from_collection([1]).process(UsesTag()).get_side_output(TAG)
    with pytest.raises(InvalidProgramError, match="side output"):
        side.split(parity)
    with pytest.raises(UnsupportedOperationError, match="cannot be combined"):
        environment().from_collection([1]).split(parity).get_side_output(TAG)


@pytest.mark.parametrize("chained", [True, False])
def test_an_operator_that_is_split_may_not_use_a_side_output(chained):
    def results(records):
        env = environment()
        if not chained:
            env.disable_operator_chaining()
        return collect_locally(env.from_collection(records).process(UsesTag()).split(parity).select("odd"))

    assert results([1, 3]) == [1, 3]
    with pytest.raises(JobExecutionError, match="'side' is used by an operator whose result is split"):
        results([1, 2])


@pytest.mark.parametrize("answer", ["odd", None, 7])
def test_a_selector_answers_a_list_of_names(answer):
    with pytest.raises(JobExecutionError, match=f"returned {answer!r}; return a list of names"):
        collect_locally(environment().from_collection([1]).split(lambda _: answer).select("odd"))


def test_names_are_strings_and_there_is_at_least_one():
    numbers = environment().from_collection([1]).split(parity)
    with pytest.raises(ValueError, match="at least one name"):
        numbers.select()
    with pytest.raises(TypeError, match="strings, got 7"):
        numbers.select("odd", 7)
    with pytest.raises(TypeError, match=r"split\(\)"):
        environment().from_collection([1]).split("odd")
