"""Columns on Spark: aggregates and batch functions survive a killed slot, and a savepoint of them goes on on rows.

Clients read the aggregates meanwhile.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from ekorn.common import Configuration, Row, Types, WatermarkStrategy
from ekorn.common.serialization import Encoder
from ekorn.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from ekorn.datastream.columns import Count, KeyedBatchFunction, Last, Sum
from ekorn.datastream.connectors.datagen import DataGeneratorSource
from ekorn.datastream.connectors.file_system import FileSink
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.errors import StateNotServed, UnknownKey, UnknownQueryableState
from ekorn.program.running.job_client import JobClient
from ekorn.queryable import QueryableStateClient
from tests.live_jobs import Held, limited, until
from tests.spark import tally
from tests.spark.checkpointed import checkpointed_environment
from tests.spark.processes import kill_one, run_driver

RECORDS = 6_000
NUMBERS = Types.ROW_NAMED(["key", "number"], [Types.STRING(), Types.LONG()])
SUMS = Types.ROW_NAMED(["key", "count", "total", "number"], [Types.STRING(), Types.LONG(), Types.LONG(), Types.LONG()])


def record(number: int) -> Row:
    key, number = tally.record(number)
    return Row(key=key, number=number)


class States:
    """The states of both functions, which have them under the same names."""

    def open(self, context: Any) -> None:
        self.count = context.get_state(ValueStateDescriptor("count", Types.LONG(), 0))
        self.total = context.get_state(ValueStateDescriptor("total", Types.LONG(), 0))


class SumByRow(States, KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        count, total = self.count.value() + 1, self.total.value() + value.number
        self.count.update(count)
        self.total.update(total)
        yield Row(key=value.key, count=count, total=total, number=value.number)


class SumByBatch(States, KeyedBatchFunction):
    def process_batch(self, batch: Any, ctx: Any) -> Any:
        counts = ctx.running_count(start=self.count.values())
        totals = ctx.running_sum("number", start=self.total.values())
        self.count.update(ctx.last(counts))
        self.total.update(ctx.last(totals))
        yield pa.record_batch(
            [batch["key"], pa.array(counts), pa.array(totals), batch["number"]], names=SUMS.get_field_names()
        )


def line(row: Row) -> str:
    return f"{row['key']},{row['number']},{row['count']},{row['total']},{row['count']}"


def build(
    folder: Path,
    per_second: float | Held,
    *,
    on_columns: bool,
    execution: str,
    parallelism: int,
    by_function: bool = False,
    restore: str | None = None,
    backend: str = "hashmap",
) -> StreamExecutionEnvironment:
    """Build the job of `tally` in one of the two forms of a stream, with aggregates or with a function."""
    env = checkpointed_environment(
        folder, parallelism=parallelism, interval_ms=200, execution=execution, restore=restore, backend=backend
    )
    env.configure(
        Configuration().set_string("queryable-state.enable", "true").set_string("queryable-state.proxy.ports", "0")
    )
    source = DataGeneratorSource(record, RECORDS, limited(per_second))
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", NUMBERS).uid("numbers")
    keyed = (numbers.to_columns() if on_columns else numbers).key_by("key")
    if by_function:
        sums = keyed.process(SumByBatch() if on_columns else SumByRow(), SUMS)
    else:
        sums = keyed.aggregate(queryable_name="sums", count=Count(), total=Sum("number"), number=Last("number"))
    sums.uid("sums")
    lines = sums.map(line, Types.STRING())
    sink = FileSink.for_row_format(str(folder / "out"), Encoder.simple_string_encoder()).build()
    lines.sink_to(sink).uid("files")
    return env


def asked(client: JobClient, key: str) -> Row | None:
    """Return the aggregates of a key in the running job; None while it cannot answer."""
    address = client.get_queryable_state_address()
    assert address is not None
    with QueryableStateClient(address.host, address.port, address.token) as queries:
        try:
            future = queries.get_kv_state(client.get_job_id(), "sums", (key,), None, ValueStateDescriptor("sums"))
            state: Any = future.result(timeout=60)
            return state.value()
        except (StateNotServed, UnknownKey, UnknownQueryableState):
            return None


def verify_answer(client: JobClient) -> None:
    """Check the aggregates of a key that a client reads."""
    answers: list[Row | None] = []

    def answered() -> bool:
        answers.append(asked(client, "key-31"))
        return answers[-1] is not None

    until(answered)
    row = answers[-1]  # of the numbers 1, 98, 195, ...
    assert row is not None and row["count"] >= 1 and row["number"] % tally.KEYS == 1 <= row["total"]


def disturb(folder: Path, execution: str, *, by_function: bool = False) -> None:
    """Run the job on columns, kill a slot, stop it with a savepoint, and let it go on on rows."""
    held = Held(folder, RECORDS // 2, per_second=2_000)  # it does not end before it is stopped
    env = build(folder, held, on_columns=True, execution=execution, parallelism=2, by_function=by_function)
    client = env.execute_async("on columns")
    until(lambda: client.get_progress().checkpoints_completed >= 1)
    kill_one(list(client.get_progress().slot_pids), Random(1))
    until(lambda: client.get_progress().restarts >= 1 and client.get_progress().records_read >= RECORDS // 4)
    if not by_function:
        verify_answer(client)
    savepoint = client.stop_with_savepoint(False, str(folder / "savepoints")).result()
    client.get_job_execution_result().result()
    on_rows = build(
        folder,
        20_000.0,
        on_columns=False,
        execution=execution,
        parallelism=3,
        by_function=by_function,
        restore=savepoint,
        backend="rocksdb",
    )
    on_rows.execute("on rows")


def test_columns_survive_a_killed_slot_and_go_on_as_rows(tmp_path: Path) -> None:
    disturb(tmp_path, "epochs")
    assert tally.verify(RECORDS, tmp_path) == []


def test_columns_that_run_continuously_survive_a_killed_slot_and_go_on_as_rows(tmp_path: Path) -> None:
    program = "import sys; from pathlib import Path; from tests.spark.test_columns import disturb; "
    driver = run_driver(f"{program}disturb(Path(sys.argv[1]), 'continuous')", str(tmp_path))
    try:
        output, _ = driver.communicate(timeout=200)
    finally:
        driver.kill()
    assert driver.returncode == 0, output[-4000:]
    assert tally.verify(RECORDS, tmp_path) == []


def test_a_batch_function_survives_a_killed_slot_and_goes_on_as_a_function_of_rows(tmp_path: Path) -> None:
    disturb(tmp_path, "epochs", by_function=True)
    assert tally.verify(RECORDS, tmp_path) == []
