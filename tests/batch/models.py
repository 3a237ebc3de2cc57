"""Every transformation beside a model of it in plain Python: what hypothesis compares, in process and on Spark.

A case takes the records of two inputs, pairs of a small key and a number, and returns what the program gives and what
the model says. Results without an order are compared as multisets.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from ekorn.dataset import (
    Aggregations,
    DataSet,
    FlatJoinFunction,
    GroupCombineFunction,
    GroupReduceFunction,
    JoinHint,
    Order,
)

Records = list[tuple[Any, int]]
Case = Callable[[DataSet, DataSet, Records, Records], tuple[DataSet, list[Any]]]

CASES: dict[str, Case] = {}


def case(function: Case) -> Case:
    CASES[function.__name__] = function
    return function


def groups(records: Records, key: Callable[[Any], Any] = lambda record: record[0]) -> dict[Any, Records]:
    found: dict[Any, Records] = defaultdict(list)
    for record in records:
        found[key(record)].append(record)
    return found


def same(given: list[Any], expected: list[Any]) -> bool:
    return Counter(map(repr, given)) == Counter(map(repr, expected))


def sums(values):
    total = list(values)
    return [(total[0][0], sum(value for _, value in total), len(total))]


class SumGroup(GroupReduceFunction, GroupCombineFunction):
    """Combines to pairs, and marks what the final call makes."""

    def combine(self, values):
        found = list(values)
        return [(found[0][0], sum(value for _, value in found))]

    def reduce(self, values):
        found = list(values)
        yield ("sum", found[0][0], sum(value for _, value in found))


# ---------------------------------------------------------------------------------- record by record


@case
def map_and_filter(a, b, xs, ys):
    return a.map(lambda r: (r[1], r[0])).filter(lambda r: r[0] % 2 == 0), [(v, k) for k, v in xs if v % 2 == 0]


@case
def flat_map(a, b, xs, ys):
    return a.flat_map(lambda r: [r] * (r[1] % 3)), [r for r in xs for _ in range(r[1] % 3)]


@case
def map_partition_sees_every_record_once(a, b, xs, ys):
    return a.map_partition(lambda values: [list(values)]).flat_map(lambda part: part), xs


@case
def project(a, b, xs, ys):
    return a.project(1, 0, 1), [(v, k, v) for k, v in xs]


@case
def a_shared_input_and_a_union(a, b, xs, ys):
    shared = a.map(lambda r: r)
    return shared.union(b, shared), [*xs, *xs, *ys]


# ---------------------------------------------------------------------------------- all records


@case
def reduce_all(a, b, xs, ys):
    total = a.map(lambda r: r[1]).reduce(lambda x, y: x + y)
    return total, [sum(v for _, v in xs)] if xs else []


@case
def reduce_group_of_all(a, b, xs, ys):
    return a.reduce_group(lambda values: [sorted(v for _, v in values)]), [sorted(v for _, v in xs)] if xs else []


@case
def combinable_reduce_group_of_all(a, b, xs, ys):
    total = a.map(lambda r: ("all", r[1])).reduce_group(SumGroup())
    return total, [("sum", "all", sum(v for _, v in xs))] if xs else []


@case
def aggregate_of_all(a, b, xs, ys):
    values = [v for _, v in xs]
    result = a.map(lambda r: (r[1], r[1], r[1])).aggregate(Aggregations.SUM, 0).and_min(1).and_agg(Aggregations.MAX, 2)
    return result, [(sum(values), min(values), max(values))] if xs else []


@case
def min_by_and_max_by_of_all(a, b, xs, ys):
    numbers = [(v, str(k)) for k, v in xs]
    swapped = a.map(lambda r: (r[1], str(r[0])))
    return swapped.min_by(0, 1).union(swapped.max_by(0, 1)), [min(numbers), max(numbers)] if xs else []


@case
def first_of_all(a, b, xs, ys):
    return a.first(3).map(lambda r: 1), [1] * min(3, len(xs))


# ---------------------------------------------------------------------------------- groups


@case
def grouped_reduce(a, b, xs, ys):
    result = a.group_by(0).reduce(lambda x, y: (x[0], x[1] + y[1]))
    return result, [(k, sum(v for _, v in rs)) for k, rs in groups(xs).items()]


@case
def grouped_reduce_by_name_of_a_field(a, b, xs, ys):
    result = a.group_by("f0").reduce(lambda x, y: (x[0], x[1] + y[1]))
    return result, [(k, sum(v for _, v in rs)) for k, rs in groups(xs).items()]


@case
def reduce_group(a, b, xs, ys):
    return a.group_by(0).reduce_group(sums), [(k, sum(v for _, v in rs), len(rs)) for k, rs in groups(xs).items()]


@case
def reduce_group_that_reads_part_of_each_group(a, b, xs, ys):
    return a.group_by(0).reduce_group(lambda values: [next(values)[0]]), list(groups(xs))


@case
def reduce_group_by_a_selector(a, b, xs, ys):
    result = a.group_by(lambda r: r[1] % 4).reduce_group(lambda values: [sorted(v for _, v in values)])
    return result, [sorted(v for _, v in rs) for rs in groups(xs, lambda r: r[1] % 4).values()]


@case
def reduce_group_by_two_fields(a, b, xs, ys):
    counts = Counter(xs)
    return a.group_by(0, 1).reduce_group(lambda values: [len(list(values))]), list(counts.values())


@case
def reduce_group_of_sorted_groups(a, b, xs, ys):
    result = a.group_by(0).sort_group(1, Order.DESCENDING).reduce_group(lambda values: [[v for _, v in values]])
    return result, [sorted((v for _, v in rs), reverse=True) for rs in groups(xs).values()]


@case
def reduce_group_of_groups_sorted_by_two_fields(a, b, xs, ys):
    triples = a.map(lambda r: (r[0], r[1] % 2, r[1]))
    result = triples.group_by(0).sort_group(1).sort_group(2, Order.DESCENDING).reduce_group(lambda v: [list(v)])
    expected = [sorted(((k, v % 2, v) for _, v in rs), key=lambda t: (t[1], -t[2])) for k, rs in groups(xs).items()]
    return result, expected


@case
def combinable_reduce_group(a, b, xs, ys):
    return a.group_by(0).reduce_group(SumGroup()), [("sum", k, sum(v for _, v in rs)) for k, rs in groups(xs).items()]


@case
def combine_group_then_reduce_group(a, b, xs, ys):
    combined = a.group_by(0).combine_group(SumGroup())
    return combined.group_by(0).reduce_group(SumGroup()), [
        ("sum", k, sum(v for _, v in rs)) for k, rs in groups(xs).items()
    ]


@case
def grouped_aggregate(a, b, xs, ys):
    doubled = a.map(lambda r: (r[0], r[1], r[1]))
    result = doubled.group_by(0).sum(1).and_max(2)
    return result, [(k, sum(v for _, v in rs), max(v for _, v in rs)) for k, rs in groups(xs).items()]


@case
def grouped_min_by(a, b, xs, ys):
    return a.group_by(0).min_by(1), [min(rs, key=lambda r: r[1]) for rs in groups(xs).values()]


@case
def first_of_each_group(a, b, xs, ys):
    return a.group_by(0).first(2).map(lambda r: r[0]), [k for k, rs in groups(xs).items() for _ in rs[:2]]


@case
def first_of_each_sorted_group(a, b, xs, ys):
    return a.group_by(0).sort_group(1).first(2), [
        r for rs in groups(xs).values() for r in sorted(rs, key=lambda r: r[1])[:2]
    ]


@case
def distinct(a, b, xs, ys):
    return a.distinct(), list(set(xs))


@case
def distinct_by_a_field(a, b, xs, ys):
    return a.distinct(0).map(lambda r: r[0]), list(groups(xs))


@case
def groups_after_a_partitioning_on_their_key(a, b, xs, ys):
    placed = a.partition_by_hash(0).filter(lambda r: r[1] >= 0)
    kept = [r for r in xs if r[1] >= 0]
    return placed.group_by(0).reduce_group(sums), [
        (k, sum(v for _, v in rs), len(rs)) for k, rs in groups(kept).items()
    ]


# ---------------------------------------------------------------------------------- two inputs


def pairs(xs, ys):
    return [(x, y) for x in xs for y in ys if x[0] == y[0]]


def unmatched(xs, ys):
    keys = {y[0] for y in ys}
    return [x for x in xs if x[0] not in keys]


def _join_with(hint):
    def run(a, b, xs, ys):
        return a.join(b, hint).where(0).equal_to(0), pairs(xs, ys)

    run.__name__ = f"join_{hint.name.lower()}"
    return run


for each in JoinHint:
    case(_join_with(each))


def _outer(kind, hint):
    def run(a, b, xs, ys):
        join = getattr(a, f"{kind}_outer_join")(b, hint)
        left = [(x, None) for x in unmatched(xs, ys)] if kind in ("left", "full") else []
        right = [(None, y) for y in unmatched(ys, xs)] if kind in ("right", "full") else []
        return join.where(0).equal_to("f0").using(lambda x, y: (x, y)), [*pairs(xs, ys), *left, *right]

    run.__name__ = f"{kind}_outer_join_{hint.name.lower()}"
    return run


for kind, refused in (("left", "BROADCAST_HASH_FIRST"), ("right", "BROADCAST_HASH_SECOND"), ("full", "BROADCAST")):
    for each in JoinHint:
        if not each.name.startswith(refused):
            case(_outer(kind, each))


class KeepSmaller(FlatJoinFunction):
    def join(self, first, second):
        if first[1] <= second[1]:
            yield first[1], second[1]


@case
def flat_join(a, b, xs, ys):
    return a.join(b).where(0).equal_to(0).using(KeepSmaller()), [(x[1], y[1]) for x, y in pairs(xs, ys) if x[1] <= y[1]]


@case
def projected_join(a, b, xs, ys):
    joined = a.join(b).where(0).equal_to(0).project_second(1).project_first().project_first(0)
    return joined, [(y[1], x, x[0]) for x, y in pairs(xs, ys)]


@case
def join_by_selectors_with_a_partitioner(a, b, xs, ys):
    joined = a.join(b).where(lambda r: r[1] % 3).equal_to(lambda r: r[1] % 5)
    joined = joined.with_partitioner(lambda key, count: key % count)
    return joined, [(x, y) for x in xs for y in ys if x[1] % 3 == y[1] % 5]


@case
def join_with_itself(a, b, xs, ys):
    return a.join(a).where(0).equal_to(0), pairs(xs, xs)


@case
def join_of_partitioned_inputs(a, b, xs, ys):
    left, right = a.partition_by_hash(0), b.partition_by_hash(0)
    return left.join(right).where(0).equal_to(0), pairs(xs, ys)


@case
def co_group(a, b, xs, ys):
    both = a.co_group(b).where(0).equal_to(0)
    result = both.using(lambda left, right: [(sorted(v for _, v in left), sorted(v for _, v in right))])
    ours, theirs = groups(xs), groups(ys)
    expected = [
        (sorted(v for _, v in ours.get(k, [])), sorted(v for _, v in theirs.get(k, []))) for k in {**ours, **theirs}
    ]
    return result, expected


@case
def co_group_with_sorted_groups(a, b, xs, ys):
    both = a.co_group(b).where(0).equal_to(0).sort_first_group(1).sort_second_group(1, Order.DESCENDING)
    result = both.using(lambda left, right: [([v for _, v in left], [v for _, v in right])])
    ours, theirs = groups(xs), groups(ys)
    expected = [
        (sorted(v for _, v in ours.get(k, [])), sorted((v for _, v in theirs.get(k, [])), reverse=True))
        for k in {**ours, **theirs}
    ]
    return result, expected


@case
def co_group_that_reads_nothing(a, b, xs, ys):
    return a.co_group(b).where(0).equal_to(0).with_(lambda left, right: ["key"]), ["key"] * len({k for k, _ in xs + ys})


@case
def cross(a, b, xs, ys):
    return a.cross(b), [(x, y) for x in xs for y in ys]


@case
def cross_with_huge_and_function(a, b, xs, ys):
    return a.cross_with_huge(b).using(lambda x, y: x[1] - y[1]), [x[1] - y[1] for x in xs for y in ys]


@case
def projected_cross(a, b, xs, ys):
    return a.cross_with_tiny(b).project_first(1).project_second(1), [(x[1], y[1]) for x in xs for y in ys]


# ---------------------------------------------------------------------------------- where records are


@case
def rebalance(a, b, xs, ys):
    return a.rebalance().map(lambda r: r), xs


@case
def partition_by_hash_keeps_keys_together(a, b, xs, ys):
    result = a.partition_by_hash(0).map_partition(lambda values: {k for k, _ in values})
    return result, list(groups(xs))


@case
def partition_by_range_and_sort(a, b, xs, ys):
    by_value = a.map(lambda r: r[1]).partition_by_range("*").sort_partition("*")
    return by_value.map_partition(lambda values: [list(values)]).reduce_group(ordered), [sorted(v for _, v in xs)]


def ordered(partitions):
    """Put sorted partitions after one another in their order; equal values must not be in two of them."""
    kept = sorted(part for part in partitions if part)
    assert all(low[-1] < high[0] for low, high in pairwise(kept)), kept
    return [[value for part in kept for value in part]]


@case
def partition_by_range_descending(a, b, xs, ys):
    placed = a.map(lambda r: (r[1], r[1] % 2)).partition_by_range(1, 0).with_orders(Order.DESCENDING, Order.ASCENDING)
    return placed.group_by(0, 1).reduce_group(lambda values: [len(list(values))]), list(
        Counter(v for _, v in xs).values()
    )


@case
def partition_custom(a, b, xs, ys):
    placed = a.partition_custom(lambda key, count: key % count, 1)
    return placed.map_partition(lambda values: {v for _, v in values}), list({v for _, v in xs})


@case
def sort_partition_by_two_fields(a, b, xs, ys):
    result = a.map(lambda r: (r[1] % 3, r[1])).set_parallelism(1).sort_partition(0, Order.DESCENDING).sort_partition(1)
    result = result.set_parallelism(1).map_partition(lambda values: [list(values)]).set_parallelism(1)
    return result, [sorted(((v % 3, v) for _, v in xs), key=lambda t: (-t[0], t[1]))]


@case
def zip_with_index(a, b, xs, ys):
    return a.zip_with_index().map(lambda r: r[0]), list(range(len(xs)))


@case
def zip_with_unique_id(a, b, xs, ys):
    numbers = a.zip_with_unique_id().map(lambda r: r[0]).distinct()
    return numbers.map(lambda number: 1), [1] * len(xs)


@case
def sample_of_a_size(a, b, xs, ys):
    return a.zip_with_index().sample_with_size(False, 4, seed=1).distinct().map(lambda r: 1), [1] * min(4, len(xs))


@case
def sample_of_a_size_with_replacement(a, b, xs, ys):
    return a.sample_with_size(True, 4).map(lambda r: 1), [1] * (4 if xs else 0)


@case
def sample_of_everything_and_of_nothing(a, b, xs, ys):
    return a.sample(False, 1.0).union(a.sample(True, 0.0, seed=3)), xs
