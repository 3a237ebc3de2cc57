"""Deduplication, the best rows of a key, and absent events: what a loop over the rows finds, for any batches."""

import math
from typing import Any

import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.common import Duration, Row, Time, Types
from ekorn.datastream.columns import Absence, Deduplicate, TopK
from ekorn.datastream.state import StateTtlConfig
from ekorn.errors import InvalidProgramError
from ekorn.testing import KeyedBatchHarness
from tests.columns.orders import ORDERS, as_set, collected, environment, orders
from tests.examples_by_profile import examples

EVENT = Types.ROW_NAMED(["k", "v"], [Types.STRING(), Types.DOUBLE()])
numbers = st.one_of(st.none(), st.integers(-9, 9).map(float), st.sampled_from([math.inf, -math.inf, math.nan, -0.0]))
batches = st.lists(
    st.lists(st.tuples(st.sampled_from("abc"), numbers), min_size=1, max_size=15), min_size=1, max_size=6
)


def harness(function, output_type=EVENT, **options):
    return KeyedBatchHarness(function, "k", type_info=EVENT, output_type=output_type, **options)


def test_the_first_row_of_each_key_is_kept_and_again_when_the_key_is_forgotten():
    ttl = StateTtlConfig.new_builder(Time.milliseconds(100)).build()
    for function, kept in ((Deduplicate(), [1.0, 2.0, 5.0]), (Deduplicate(ttl), [1.0, 2.0, 5.0, 6.0])):
        with harness(function) as under_test:
            under_test.process_batch([Row("a", 1.0), Row("b", 2.0), Row("a", 3.0)])
            under_test.process_batch([Row("a", 4.0), Row("c", 5.0)])
            under_test.advance_processing_time(200)
            under_test.restore(under_test.snapshot())
            under_test.process_batch([Row("a", 6.0), Row("a", 7.0)])
            assert [row.v for row in under_test.output()] == kept
            under_test.check_rows()


def best_rows(batches, k, *, smallest):
    best, found = {}, []
    for key, value in (row for batch in batches for row in batch):
        if value is None or math.isnan(value):
            continue
        kept = best.setdefault(key, [])
        as_good = [other for other in kept if (other <= value if smallest else other >= value)]
        if len(as_good) < k:
            found.append(Row(k=key, v=value))
        kept.append(value)
    return found


@settings(max_examples=examples(15), deadline=None)
@given(batches=batches, k=st.integers(1, 3), smallest=st.booleans(), restores=st.booleans())
def test_a_row_is_kept_if_it_is_among_the_best_ones_of_its_key_so_far(batches, k, smallest, restores):
    with harness(TopK("v", k, smallest=smallest)) as under_test:
        for batch in batches:
            under_test.process_batch([Row(key, value) for key, value in batch])
            if restores:
                under_test.restore(under_test.snapshot())
        assert under_test.output() == best_rows(batches, k, smallest=smallest)
        under_test.check_rows()


def test_an_absent_event_is_told_with_the_time_of_the_last_one_that_was_not_followed():
    def is_order(batch):
        return pc.greater(batch["v"], 0)

    def is_payment(batch):
        return pc.less(batch["v"], 0)

    absence = Absence(after=is_order, of=is_payment, within=Duration.of_millis(10))
    missing = Types.ROW_NAMED(["k", "since"], [Types.STRING(), Types.LONG()])
    with harness(absence, missing) as under_test:
        rows = [
            ("a", 1.0, 0),
            ("b", 1.0, 1),
            ("c", 1.0, 2),
            ("b", -1.0, 3),
            ("c", -1.0, 3),
            ("c", 2.0, 4),
            ("d", -1.0, 5),
        ]
        under_test.process_batch([Row(k, v) for k, v, _ in rows], [time for *_, time in rows])
        under_test.process_batch([Row("a", 1.0), Row("b", 0.0)], [7, 8])
        under_test.process_watermark(16)
        assert under_test.output_with_timestamps() == [(Row(k="c", since=4), 14)]
        under_test.restore(under_test.snapshot())
        under_test.process_batch([Row("b", 3.0)], [20])
        under_test.end_input()
        assert under_test.output_with_timestamps()[1:] == [(Row(k="a", since=7), 17), (Row(k="b", since=20), 30)]
        under_test.check_rows()


def test_results_have_the_columns_of_the_stream_unless_the_function_has_others():
    stream = orders(environment()).to_columns().key_by("customer")
    kept = stream.process(Deduplicate())
    assert kept.row_type == stream.row_type
    assert as_set(row.customer for row in collected(kept)) == [f"c{c}" for c in range(5)]
    best = orders(environment()).key_by("customer").process(TopK("amount", 2, smallest=True))
    assert sorted(row.amount for row in collected(best) if row.customer == "c0")[:2] == [0, 5]
    assert set(map(str, collected(best))) <= set(map(str, ORDERS))
    absence = Absence(after=len, of=len, within=Duration.of_millis(1))
    assert stream.process(absence).row_type.field_names() == ["customer", "since"]


def test_numbers_of_rows_and_columns_that_make_no_sense_are_refused():
    invalid: list[Any] = [0, 101, 1.5, True]
    for k in invalid:
        with pytest.raises(ValueError, match="from 1 to 100"):
            TopK("v", k)
    since = Types.ROW_NAMED(["since"], [Types.LONG()])
    stream = environment().from_collection([Row(1)], since).to_columns().key_by("since")
    with pytest.raises(InvalidProgramError, match="a column 'since' in its results"):
        stream.process(Absence(after=len, of=len, within=Duration.of_millis(1)))
