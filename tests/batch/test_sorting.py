"""Sorting more records than fit into memory: sorted runs, merged chunk by chunk."""

from hypothesis import given
from hypothesis import strategies as st

from ekorn.batch.plan.data_set_specs import Order, SortField
from ekorn.batch.plan.record_keys import FieldKeys
from ekorn.batch.tasks.sorting import SortedBy, Sorter, merged

FIELDS = st.tuples(st.integers(0, 3), st.sampled_from("abc"))
ORDERS = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from(list(Order))), min_size=1, max_size=2, unique_by=lambda o: o[0]
)


@given(
    runs=st.lists(st.lists(FIELDS, max_size=12), max_size=4), order=ORDERS, size=st.integers(1, 4), keyed=st.booleans()
)
def test_merged_runs_are_the_sorted_whole_and_equal_records_keep_their_order(runs, order, size, keyed):
    fields = tuple(SortField((position,), direction) for position, direction in order)
    by = SortedBy(FieldKeys(((0,),)) if keyed else None, fields)
    numbered = [[(*record, (run, place)) for place, record in enumerate(records)] for run, records in enumerate(runs)]
    ready = [by.sort(records) for records in numbered]
    chunked = [iter([records[n : n + size] for n in range(0, len(records), size)]) for records in ready]
    found = [record for chunk in merged(by, chunked) for record in chunk]
    assert found == by.sort([record for records in ready for record in records])


def test_a_sorter_without_memory_returns_what_one_with_memory_returns():
    by = SortedBy(None, (SortField((0,), Order.DESCENDING),))
    records = [(n * 7919 % 1000, n) for n in range(50_000)]
    spilling = Sorter(by, 0).add_all(iter(records))
    assert list(spilling.sorted()) == list(Sorter(by, 1 << 20).add_all(iter(records)).sorted())
