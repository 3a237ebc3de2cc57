"""Batch functions over two keyed streams: the results of the same function of rows."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.common import Row, Types
from ekorn.datastream import KeyedCoProcessFunction
from ekorn.datastream.columns import ColumnStream, KeyedCoBatchFunction
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.errors import InvalidProgramError, JobExecutionError
from ekorn.testing import TwoInputHarness
from tests.columns.batch_functions import results
from tests.columns.orders import ENGINES, ORDERS, as_set, collected, environment, orders
from tests.examples_by_profile import examples

ORDER = Types.ROW_NAMED(["k", "v"], [Types.STRING(), Types.LONG()])
PAYMENT = Types.ROW_NAMED(["paid", "name"], [Types.LONG(), Types.STRING()])
FOUND = Types.ROW_NAMED(
    ["k", "what", "a", "b", "text"], [Types.STRING(), Types.STRING(), Types.LONG(), Types.LONG(), Types.STRING()]
)


class Sums:
    """The states of both forms: the sums of two streams, which a timer clears."""

    def open(self, context):
        self.ordered = context.get_state(ValueStateDescriptor("ordered", Types.LONG(), 0))
        self.paid = context.get_state(ValueStateDescriptor("paid", Types.LONG(), 0))


class OfRows(Sums, KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        return self.take("order", self.ordered, value.k, value.v, ctx)

    def process_element2(self, value, ctx):
        return self.take("payment", self.paid, value.name, value.paid, ctx)

    def take(self, what, state, key, amount, ctx):
        state.update(state.value() + amount)
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 10)
        yield Row(k=key, what=what, a=self.ordered.value(), b=self.paid.value(), text=None)

    def on_timer(self, timestamp, ctx):
        yield Row(
            k=ctx.get_current_key()[0], what="end", a=self.ordered.value(), b=self.paid.value(), text=str(timestamp)
        )
        self.ordered.clear()


class OfBatches(Sums, KeyedCoBatchFunction):
    def process_batch1(self, batch, ctx):
        running = ctx.running_sum("v", start=self.ordered.values())
        self.ordered.update(ctx.last(running))
        self.timers(ctx)
        paid = ctx.to_rows(self.paid.values())
        yield results(batch.column("k"), "order", running, paid, [None] * len(batch))

    def process_batch2(self, batch, ctx):
        running = ctx.running_sum("paid", start=self.paid.values())
        self.paid.update(ctx.last(running))
        self.timers(ctx)
        ordered = ctx.to_rows(self.ordered.values())
        yield results(batch.column("name"), "payment", ordered, running, [None] * len(batch))

    @staticmethod
    def timers(ctx):
        for key in ctx.per_key():
            for time in key.timestamps():
                key.register_event_time_timer(time + 10)

    def on_timers(self, keys, timestamps, ctx):
        texts = list(map(str, timestamps.tolist()))
        yield results(keys.column("k"), "end", self.ordered.values(), self.paid.values(), texts)
        self.ordered.clear()


def found(function, steps, other):
    form = {"function": function}

    def pipeline(first, second):
        keyed = first.connect(second).key_by(["k"], ["name"])
        return keyed.process(form["function"], FOUND).uid("sums")

    with TwoInputHarness(pipeline, type_info1=ORDER, type_info2=PAYMENT) as harness:
        for step in steps:
            if step[0] == "orders":
                harness.process_batch1([Row(k=k, v=v) for k, v, _ in step[1]], [time for *_, time in step[1]])
            elif step[0] == "payments":
                rows = [Row(paid=v, name=k) for k, v, _ in step[1]]
                harness.process_batch2(rows, [time for *_, time in step[1]])
            elif step[0] == "watermark":
                harness.process_watermark(step[1])
            else:
                saved = harness.snapshot()
                form["function"] = other
                harness.restore(saved, step[1])
        harness.end_input()
        return sorted(map(str, harness.output_with_timestamps()))


rows = st.lists(st.tuples(st.sampled_from("abc"), st.integers(-9, 9), st.integers(0, 50)), min_size=1, max_size=9)
steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["orders", "payments"]), rows),
        st.tuples(st.just("restore"), st.integers(1, 3)),
    ),
    max_size=8,
).map(lambda some: [*some, ("watermark", 30), *some])


@settings(max_examples=examples(10), deadline=None)
@given(steps=steps, goes_on_as_rows=st.booleans())
def test_two_streams_of_batches_give_what_two_streams_of_rows_give(steps, goes_on_as_rows):
    expected = found(OfRows(), steps, OfRows())
    assert found(OfBatches(), steps, OfRows() if goes_on_as_rows else OfBatches()) == expected


@ENGINES
def test_two_streams_of_columns_share_their_state(continuous):
    class Count(KeyedCoBatchFunction):
        def open(self, runtime_context):
            self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.LONG(), 0))

        def process_batch1(self, batch, ctx):
            counts = ctx.running_count(start=self.seen.values())
            self.seen.update(ctx.last(counts))
            yield results(batch.column("customer"), "seen", counts, [None] * len(batch), [None] * len(batch))

        process_batch2 = process_batch1

    env = environment()
    first, second = (orders(env).to_columns(max_rows=7).key_by("customer") for _ in range(2))
    result = first.connect(second).process(Count(), FOUND)
    assert isinstance(result, ColumnStream)
    seen = [(row.k, row.a) for row in collected(result, continuous=continuous)]
    assert sorted(seen) == sorted((f"c{c}", n) for c in range(5) for n in range(1, 41))


def test_only_the_rows_at_fault_of_the_second_stream_are_skipped():
    class Picky(OfBatches):
        def process_batch1(self, batch, ctx):
            return None

        def process_batch2(self, batch, ctx):
            if 7 in batch.column("amount").to_pylist():
                raise ValueError("seven")
            nothing = [None] * len(batch)
            yield results(batch.column("customer"), "paid", batch.column("amount"), nothing, nothing)

    def paid(env, function):
        first, second = (orders(env).to_columns().key_by("customer") for _ in range(2))
        return first.connect(second).process(function, FOUND)

    skipped = collected(paid(environment(1), Picky()).on_record_error("skip"))
    assert as_set(row.a for row in skipped) == as_set(order.amount for order in ORDERS if order.amount != 7)
    with pytest.raises(JobExecutionError, match=r"amount=7, .* \(at position"):
        collected(paid(environment(1), Picky()))


def test_streams_without_keys_and_keys_of_different_types_are_refused():
    env = environment()
    first = orders(env).to_columns()
    with pytest.raises(InvalidProgramError, match="is a KeyedCoBatchFunction and needs two keyed streams"):
        first.connect(first).process(OfBatches(), FOUND)
    with pytest.raises(InvalidProgramError, match="they would never be equal; convert the columns"):
        first.key_by("customer").connect(first.key_by("amount")).process(OfBatches(), FOUND)
