"""Batch functions with keyed state: the results, state and timers of the same functions of rows."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.common import Configuration, Row, RuntimeExecutionMode, Types
from ekorn.datastream import OutputTag
from ekorn.datastream.columns import ColumnStream, KeyedBatchFunction
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.errors import InvalidProgramError, JobExecutionError
from ekorn.testing import KeyedBatchHarness, OneInputHarness
from tests.columns.batch_functions import BIG, FORMS, SEEN, VISIT
from tests.columns.orders import ENGINES, ORDERS, as_set, collected, environment, orders
from tests.examples_by_profile import examples


class Program(OneInputHarness):
    """The program in any of its forms; a restore may change the form."""

    def __init__(self, form, backend, parallelism=1):
        self.form = form
        configuration = Configuration()
        configuration.set_string("state.backend.type", backend)
        super().__init__(
            self.in_form, type_info=VISIT, side_outputs=[BIG], parallelism=parallelism, configuration=configuration
        )

    def in_form(self, stream):
        function = FORMS[self.form]()
        return stream.key_by("k").process(function, SEEN).uid("visits")

    def found(self):
        with_times = self.output_with_timestamps(), self.side_output_with_timestamps(BIG)
        return [sorted(map(str, each)) for each in with_times]


rows = st.lists(st.tuples(st.sampled_from("abc"), st.integers(-50, 50), st.integers(0, 60)), min_size=1, max_size=12)
steps = st.lists(
    st.one_of(
        rows,
        rows,
        st.tuples(st.just("watermark"), st.integers(0, 80)),
        st.tuples(st.just("clock"), st.integers(0, 1_100)),
        st.tuples(st.just("restore"), st.sampled_from([*FORMS]), st.integers(1, 3)),
    ),
    max_size=10,
)


def run(program, steps, *, forms=True):
    watermark = 0
    for step in steps:
        if isinstance(step, list):
            program.process_batch([Row(k=k, v=v) for k, v, _ in step], [time for *_, time in step])
        elif step[0] == "watermark":
            watermark = max(watermark, step[1])
            program.process_watermark(watermark)
        elif step[0] == "clock":
            program.set_processing_time(max(step[1], program.processing_time()))
        else:
            snapshot = program.snapshot()
            program.form = step[1] if forms else program.form
            program.restore(snapshot, step[2])
            program.process_watermark(watermark)
    program.end_input()
    program.set_processing_time(10_000)
    return program.found()


@settings(max_examples=examples(16), deadline=None)
@given(backend=st.sampled_from(["hashmap", "rocksdb"]), form=st.sampled_from(["vector", "key"]), steps=steps)
def test_a_batch_function_does_what_the_function_of_rows_does_through_restores_in_any_form(backend, form, steps):
    expected = run(Program("row", "hashmap"), steps, forms=False)
    assert run(Program(form, backend), steps) == expected


# ------------------------------------------------------------------------------------------------- on both engines

TOTAL = Types.ROW_NAMED(["customer", "amount", "total"], [Types.STRING(), Types.LONG(), Types.LONG()])
DOUBLED = OutputTag("doubled", Types.ROW_NAMED(["amount"], [Types.LONG()]))


class Total(KeyedBatchFunction):
    """Running totals; `fails_at` is an amount that it refuses."""

    def __init__(self, fails_at=None):
        self.fails_at = fails_at

    def open(self, runtime_context):
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG(), 0))
        self.calls = runtime_context.get_metrics_group().counter("calls")

    def process_batch(self, batch, ctx):
        self.calls.inc()
        running = ctx.running_sum("amount", start=self.total.values())
        self.total.update(ctx.last(running))
        if self.fails_at in batch.column("amount").to_pylist():
            raise ValueError("an amount that is refused")
        yield batch.select(["customer", "amount"]).append_column("total", running)


def totals(records):
    sums, found = {}, []
    for record in records:
        sums[record.customer] = sums.get(record.customer, 0) + record.amount
        found.append(Row(customer=record.customer, amount=record.amount, total=sums[record.customer]))
    return found


@ENGINES
@pytest.mark.parametrize("form", ["rows", "columns"])
def test_a_batch_function_runs_on_rows_and_on_columns(form, continuous):
    stream = orders(environment(1))
    stream = stream.to_columns(max_rows=7) if form == "columns" else stream
    result = stream.key_by("customer").process(Total(), TOTAL)
    assert isinstance(result, ColumnStream)
    assert as_set(collected(result, continuous=continuous)) == as_set(totals(ORDERS))


def test_a_batch_program_fires_all_timers_at_its_end():
    class AtEnd(Total):
        def process_batch(self, batch, ctx):
            list(super().process_batch(batch, ctx))
            ctx.register_event_time_timers(ctx.max("at"))
            ctx.register_processing_time_timers(1 << 60, where=ctx.last("amount").to_numpy() == 99)

        def on_timers(self, keys, timestamps, ctx):
            yield keys.append_column("amount", timestamps).append_column("total", self.total.values())

    env = environment(1)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    found = collected(orders(env).key_by("customer").process(AtEnd(), TOTAL))
    assert {(row.customer, row.total) for row in found} == {(f"c{c}", sum(range(c, 100, 5))) for c in range(5)}
    assert [row.customer for row in found if row.amount == 1 << 60] == ["c4"]


def test_only_rows_at_fault_are_skipped_and_leave_nothing_in_state():
    stream = orders(environment(1)).to_columns(max_rows=50).key_by("customer")
    found = collected(stream.process(Total(fails_at=77), TOTAL).on_record_error("skip"))
    assert as_set(found) == as_set(totals(order for order in ORDERS if order.amount != 77))


def test_an_error_names_the_row_at_fault():
    stream = orders(environment(1)).to_columns(max_rows=50).key_by("customer")
    with pytest.raises(JobExecutionError, match=r"amount=77.* \(at position \d+ of a batch of"):
        collected(stream.process(Total(fails_at=77), TOTAL))


@ENGINES
def test_side_outputs_are_columns_with_the_type_of_their_tag(continuous):
    class Sides(Total):
        def process_batch(self, batch, ctx):
            odd = batch.column("amount").to_numpy() % 2 == 1
            doubled = pa.record_batch([batch.column("amount").to_numpy()[odd] * 2], names=["amount"])
            ctx.output(DOUBLED, ctx.of_rows(doubled, odd))
            yield from super().process_batch(batch, ctx)

    stream = orders(environment()).to_columns().key_by("customer").process(Sides(), TOTAL)
    side = stream.get_side_output(DOUBLED)
    assert isinstance(side, ColumnStream)
    found = collected(side, continuous=continuous)
    assert as_set(found) == as_set(Row(amount=2 * o.amount) for o in ORDERS if o.amount % 2)


def test_results_that_no_stream_can_have_and_a_state_without_its_batch_are_refused():
    class Wrong(Total):
        def process_batch(self, batch, ctx):
            return "rows"

    class Early(Total):
        def open(self, runtime_context):
            super().open(runtime_context)
            self.total.values()

    class NoDefault(Total):
        def open(self, runtime_context):
            super().open(runtime_context)
            self.total = runtime_context.get_state(ValueStateDescriptor("last", Types.LONG()))

    for function, message in (
        (Wrong(), r"process_batch\(\) returned 'rows', a str; return a RecordBatch"),
        (Early(), r"use it in process_batch\(\) and on_timers\(\)"),
        (NoDefault(), r"state 'last' has no value for .* keys and no default"),
    ):
        with pytest.raises(JobExecutionError, match=message):
            collected(orders(environment(1)).key_by("customer").process(function, TOTAL))
    with pytest.raises(InvalidProgramError, match="keys by name"):
        orders(environment(1)).key_by(lambda order: order.customer).process(Total(), TOTAL)
    with pytest.raises(InvalidProgramError, match="'untyped' declares none"):
        orders(environment(1)).key_by("customer").process(Total(), TOTAL).get_side_output(OutputTag("untyped"))


# ------------------------------------------------------------------------------------------------- the harness


def test_the_harness_finds_a_function_whose_results_depend_on_the_batch():
    class Forgetful(Total):
        def process_batch(self, batch, ctx):
            yield batch.append_column("total", ctx.running_sum("amount"))

    order = Types.ROW_NAMED(["customer", "amount"], [Types.STRING(), Types.LONG()])
    rows = [Row(customer="a", amount=n) for n in (1, 2, 3)]
    for function, right in ((Total(), True), (Forgetful(), False)):
        with KeyedBatchHarness(function, "customer", type_info=order, output_type=TOTAL) as harness:
            harness.process_batch(rows[:2], timestamps=[5, 6])
            snapshot = harness.snapshot()
            harness.process_batch(rows[2:])
            harness.restore(snapshot)
            harness.process_batch(rows[2:], timestamps=7)
            if right:
                harness.check_rows()
                assert harness.output_with_timestamps()[-1] == (Row(customer="a", amount=3, total=6), 7)
                assert harness.state(("a",), ValueStateDescriptor("total", Types.LONG(), 0)) == 6
            else:
                with pytest.raises(AssertionError, match=r"only by the batch: .*total=3\) at 6"):
                    harness.check_rows()


def test_timers_of_a_key_fire_one_after_the_other_and_can_be_deleted_before_they_fire():
    class Timers(KeyedBatchFunction):
        def process_batch(self, batch, ctx):
            for key in ctx.per_key():
                for row in key.rows():
                    key.register_event_time_timer(row.amount)

        def on_timers(self, keys, timestamps, ctx):
            assert len(set(keys.column("customer").to_pylist())) == len(keys)
            assert ctx.current_watermark() == 100
            ctx.delete_event_time_timers(timestamps + 1)
            ctx.register_event_time_timers(50, where=timestamps < 5)
            yield keys.append_column("amount", timestamps).append_column("total", timestamps)

    order = Types.ROW_NAMED(["customer", "amount"], [Types.STRING(), Types.LONG()])
    with KeyedBatchHarness(Timers(), "customer", type_info=order, output_type=TOTAL) as harness:
        rows = [Row(customer=c, amount=n) for n in (3, 4, 6, 6, 200) for c in "abc"]
        harness.process_batch(rows)
        assert [timer.timestamp for timer in harness.timers(("a",))] == [3, 4, 6, 200]
        harness.process_watermark(100)
        assert [row.amount for row in harness.output() if row.customer == "b"] == [3, 6, 50]
        assert [time for _, time in harness.output_with_timestamps()] == [row.amount for row in harness.output()]
        assert [timer.timestamp for timer in harness.timers(("c",))] == [200]
        harness.check_rows()
