"""What a reduce keeps of each key: folds, and combiners before a shuffle."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekorn.batch.plan.record_keys import FieldKeys
from ekorn.batch.tasks.folds import Fold, fold_of
from ekorn.batch.tasks.group_operators import CombineBeforeShuffle, GroupReduce
from ekorn.dataset import ExecutionEnvironment, GroupCombineFunction, GroupReduceFunction
from ekorn.errors import JobExecutionError
from ekorn.functions.data_sets.data_set_aggregates import SumField
from ekorn.testing import on_local_engine

NUMBERS = st.integers(-5, 5) | st.floats(-1.0, 1.0)
PAIRS = st.tuples(st.sampled_from("abc"), NUMBERS)
TRIPLES = st.tuples(st.sampled_from("abc"), NUMBERS, st.integers())
RECORDS = st.sampled_from([PAIRS, TRIPLES, PAIRS | TRIPLES]).flatmap(lambda records: st.lists(records, max_size=30))


@given(chunks=st.lists(RECORDS, max_size=4))
def test_a_sum_keeps_what_its_function_makes_of_the_records(chunks):
    fast, slow = fold_of(SumField(1)), Fold(SumField(1).reduce)
    for chunk in chunks:
        for fold in (fast, slow):
            fold.add([record[0] for record in chunk], chunk)
    assert len(fast) == len(slow)
    assert fast.taken() == slow.taken()
    assert len(fast) == 0


def test_a_chunk_that_is_not_only_numbers_goes_through_the_function():
    fold = fold_of(SumField(1))
    fold.add(["a", "a"], [("a", 1), ("a", 2)])
    fold.add(["b", "a"], [("b", "alone"), ("a", 4)])
    fold.add(["c"], [("c", 5)])
    assert fold.taken() == {"a": ("a", 7), "b": ("b", "alone"), "c": ("c", 5)}
    with pytest.raises(TypeError, match="cannot add"):
        fold.add(["a", "a"], [("a", 1), ("a", "x")])


def test_a_chunk_whose_numbers_do_not_add_keeps_the_sums_before_it():
    fold = fold_of(SumField(1))
    fold.add(["a"], [("a", 1)])
    with pytest.raises(TypeError, match="unhashable"):
        fold.add(["b", []], [("b", 2), ("c", 3)])
    assert fold.taken() == {"a": ("a", 1), "b": ("b", 2)}


def test_a_sum_that_fails_names_the_record():
    with on_local_engine():
        pairs = (
            ExecutionEnvironment()
            .set_parallelism(1)
            .from_elements(("a", 1), ("a", 2))
            .map(lambda pair: (pair[0], "two" if pair[1] == 2 else 1))
        )
        with pytest.raises(JobExecutionError, match=r"record \('a', 'two'\): TypeError: sum of field 1 cannot add"):
            pairs.group_by(0).sum(1).collect()


class Sums(GroupReduceFunction, GroupCombineFunction):
    def combine(self, values):
        key, total, calls = next(values)
        for _, more, others in values:
            total, calls = total + more, calls + others
        return [(key, total, calls)]

    reduce = combine


@pytest.mark.parametrize(("memory_mb", "most"), [(1 << 20, 50), (0, 2000)])
def test_a_combiner_sends_one_record_of_each_key_while_they_fit_into_memory(memory_mb, most):
    combiner = CombineBeforeShuffle("sums", Sums(), FieldKeys(((0,),)), (), parameters={}, memory_mb=memory_mb)
    left = list(combiner.run((n % 50, n, 1) for n in range(2000)))
    assert len(left) <= most
    assert {key: sum(v for k, v, _ in left if k == key) for key in range(50)} == {
        key: sum(range(key, 2000, 50)) for key in range(50)
    }
    assert sum(calls for _, _, calls in left) == 2000


def test_a_combiner_reads_its_own_results_again():
    combiner = CombineBeforeShuffle("sums", Sums(), FieldKeys(((0,),)), (), parameters={}, memory_mb=1 << 20)
    left = list(combiner.run((n % 2, 1, 1) for n in range(600_000)))  # more than it combines at a time
    assert left == [(0, 300_000, 300_000), (1, 300_000, 300_000)]


def test_a_combiner_passes_records_on_after_keys_that_hardly_repeat():
    combiner = CombineBeforeShuffle("sums", Sums(), FieldKeys(((0,),)), (), parameters={}, memory_mb=1 << 20)
    many = [(n % 600_000, 1, 1) for n in range(700_000)]
    left = list(combiner.run(iter(many)))
    assert len(left) == len(many)
    assert sorted(left) == sorted(many)


@given(records=st.lists(st.tuples(st.integers(0, 5) | st.text(max_size=1), st.integers()), max_size=60))
def test_groups_that_do_not_fit_into_memory_are_those_that_do(records):
    found = [groups_of(records, memory_mb) for memory_mb in (0, 1 << 20)]
    assert found[0] == found[1]


def test_a_group_that_is_larger_than_the_memory_is_read_from_disk():
    records = [(n % 10 == 0, (n, str(n))) for n in range(300_000)]
    found = groups_of(records, 0)
    assert [value for _, value in found[False]] == [(n, str(n)) for n in range(300_000) if n % 10]
    assert len(found[True]) == 30_000


def groups_of(records, memory_mb):
    """Return the records of each key, as a group-reduce hands them to its function."""
    reduce = GroupReduce(
        "groups", lambda group: [list(group)], FieldKeys(((0,),)), (), parameters={}, memory_mb=memory_mb
    )
    return {group[0][0]: group for group in reduce.run(iter(records))}


def test_a_sum_leaves_a_long_decimal_as_it_is():
    exact = Decimal("1234567890123456789012345678901234567890.5")
    fold = fold_of(SumField(1))
    fold.add(["a"], [("a", exact)])
    assert fold.taken() == {"a": ("a", exact)}
