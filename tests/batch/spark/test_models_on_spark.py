"""The models of the transformations on Spark: some of them always, all of them in the soak."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.batch.generated_records import RECORDS
from tests.batch.models import CASES, same

ALWAYS = [
    "a_shared_input_and_a_union",
    "combinable_reduce_group",
    "reduce_group_of_groups_sorted_by_two_fields",
    "grouped_aggregate",
    "distinct",
    "first_of_each_group",
    "full_outer_join_optimizer_chooses",
    "left_outer_join_broadcast_hash_second",
    "join_repartition_sort_merge",
    "join_of_partitioned_inputs",
    "co_group_with_sorted_groups",
    "cross_with_huge_and_function",
    "partition_by_range_and_sort",
    "zip_with_index",
]
LEFT = [("a", 1)] * 40 + [("b", 2), (-1, 3), (-2, 4), ((1, "x"), 5), (1 << 70, 6)]
RIGHT = [("a", 7), ("c", 8), (-2, 9), ((1, "x"), 10)]


def check(env, name, xs, ys):
    a, b = (env.from_collection(records).map(lambda record: record) for records in (xs, ys))
    result, expected = CASES[name](a, b, xs, ys)
    found = result.collect()
    assert same(found, expected), (name, found, expected)


@pytest.mark.parametrize("name", ALWAYS)
def test_transformation_equals_its_model(env, name):
    check(env, name, LEFT, RIGHT)


def test_transformations_of_nothing(env):
    for name in ("co_group", "reduce_all", "partition_by_range_and_sort"):
        check(env.set_parallelism(3), name, [], [])


@pytest.mark.soak
@pytest.mark.parametrize("name", CASES)
def test_every_transformation_equals_its_model(env, name):
    @given(xs=RECORDS, ys=RECORDS, parallelism=st.sampled_from([1, 2, 5]))
    def holds(xs, ys, parallelism):
        check(env.set_parallelism(parallelism), name, xs, ys)

    holds()
