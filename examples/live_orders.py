"""A live job: orders stream in, state holds the revenue per customer, and half-way a slot process is killed.

    make demo                        (or: python examples/live_orders.py --seconds 20)

The line on the terminal shows records per second, epochs, and a checkpoint every second. When the slot dies, the job
restores its last checkpoint and continues from there. At the end the totals on disk are compared with totals that plain
Python computes: nothing is lost and nothing is counted twice.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from ekorn.common import Types, WatermarkStrategy
from ekorn.common.serialization import Encoder
from ekorn.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.datastream.connectors.file_system import FileSink
from ekorn.datastream.state import ValueStateDescriptor

CUSTOMERS = 500
PRODUCTS = ("acorn", "beechnut", "hazelnut", "walnut")


def order(number: int) -> tuple[str, str, int]:
    """Return the customer, product and cents of an order. They depend on its number alone, so it can be read again."""
    return f"customer-{number * 7919 % CUSTOMERS:03d}", PRODUCTS[number % 4], 100 + number * 31 % 900


class Revenue(KeyedProcessFunction):
    """Keeps the number of orders and the revenue of each customer."""

    def open(self, runtime_context):
        self.state = runtime_context.get_state(ValueStateDescriptor("revenue", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value, ctx):
        customer, _product, cents = value
        orders, total = self.state.value() or (0, 0)
        self.state.update((orders + 1, total + cents))
        yield f"{customer},{orders + 1},{total + cents}"


def build(env: StreamExecutionEnvironment, orders: int, per_second: float, output: Path) -> None:
    """Draw the job: orders -> revenue per customer -> files, exactly once."""
    source = DataGeneratorSource(order, orders, RateLimiterStrategy.per_second(per_second))
    sink = FileSink.for_row_format(str(output), Encoder.simple_string_encoder()).build()
    (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "orders")
        .key_by(lambda value: value[0])
        .process(Revenue(), output_type=Types.STRING())
        .name("revenue per customer")
        .uid("revenue")
        .sink_to(sink)
        .name("files")
    )


def expected(orders: int) -> dict[str, tuple[int, int]]:
    """Compute the orders and revenue of each customer in plain Python."""
    totals: dict[str, tuple[int, int]] = {}
    for number in range(orders):
        customer, _product, cents = order(number)
        count, total = totals.get(customer, (0, 0))
        totals[customer] = count + 1, total + cents
    return totals


def main() -> int:
    """Run the job, kill a slot on the way, and compare the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=15.0, help="the seconds for which orders stream in")
    parser.add_argument("--rate", type=float, default=20_000.0, help="orders per second")
    parser.add_argument("--no-kill", action="store_true", help="do not kill a slot")
    options = parser.parse_args()
    orders = int(options.seconds * options.rate)

    with tempfile.TemporaryDirectory(prefix="ekorn-demo-") as folder:
        output, checkpoints = Path(folder) / "revenue", Path(folder) / "checkpoints"
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(2)
        env.enable_checkpointing(1000)
        env.get_checkpoint_config().set_checkpoint_storage_dir(str(checkpoints))
        build(env, orders, options.rate, output)
        print(
            f"{orders:,} orders at {options.rate:,.0f} a second, 2 slots, a checkpoint every second. Spark starts ..."
        )
        job = env.execute_async("live orders")
        watch(job, orders, kill=not options.no_kill)
        job.get_job_execution_result().result()
        found = [line.split(",") for part in output.rglob("part-*") for line in part.read_text().splitlines()]
    return report(found, expected(orders), job.get_progress())


def watch(job, orders: int, *, kill: bool) -> None:
    """Print a line of progress until the job has ended; kill a slot when half of the orders are read."""
    began, killed, last = time.monotonic(), not kill, ""
    while not job.get_job_status().result().is_globally_terminal_state():
        seen = job.get_progress()
        if not killed and seen.records_read > orders // 2 and seen.checkpoints_completed > 0:
            os.kill(seen.slot_pids[0], signal.SIGKILL)
            say(f"  kill -9 {seen.slot_pids[0]}  (a slot process, at {seen.records_read:,} orders)", end="\n")
            killed = True
        if seen.restarts and seen.last_failure and seen.last_failure != last:
            last = seen.last_failure
            say(f"  {last}", end="\n")
        done = int(30 * seen.records_read / orders)
        say(
            f"  [{'#' * done}{'.' * (30 - done)}] {seen.records_read:>9,} orders   epoch {seen.epochs:>4} "
            f"({seen.last_epoch_ms:4.0f} ms)   checkpoint {seen.last_checkpoint_id or 0:>3} "
            f"({seen.last_checkpoint_ms:3.0f} ms, {seen.last_checkpoint_bytes / 1024:.0f} KB)   "
            f"restarts {seen.restarts}   {time.monotonic() - began:4.1f} s"
        )
        time.sleep(0.2)
    say("", end="\n")


def say(text: str, end: str = "") -> None:
    """Overwrite the current line of a terminal; elsewhere print whole lines only."""
    if sys.stdout.isatty():
        print(f"\r\033[K{text}", end=end, flush=True)
    elif end:
        print(text, flush=True)


def report(found: list[list[str]], wanted: dict[str, tuple[int, int]], progress) -> int:
    """Print the result; return 0 if every order is there exactly once and every revenue is right."""
    times = Counter((customer, int(count)) for customer, count, _ in found)
    lost = sum(1 for customer, (orders, _) in wanted.items() for n in range(1, orders + 1) if times[customer, n] == 0)
    twice = sum(n - 1 for n in times.values())
    final = {customer: int(total) for customer, count, total in found if int(count) == wanted[customer][0]}
    wrong = sum(1 for customer, (_, total) in wanted.items() if final.get(customer) != total)
    print(
        f"  {len(found):,} lines on disk, {progress.checkpoints_completed} checkpoints, {progress.restarts} restart(s)"
    )
    print(f"  {lost} orders lost, {twice} counted twice, {wrong} of {len(wanted)} customers with a wrong total")
    return 1 if lost or twice or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
