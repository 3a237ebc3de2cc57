"""A live job: orders stream in, state holds the revenue per customer, and half-way a slot process is killed.

    make demo                        (or: python examples/live_orders.py --seconds 20)

When the slot dies, the job restores its last checkpoint and continues from there. At the end the lines on disk are
compared with totals that plain Python computes: nothing is lost and nothing is counted twice. The same holds for a job
that is stopped on the way, from another shell, and continued:

    ekorn stop -p savepoints "live orders"
    ekorn run -s savepoints/savepoint-* examples/live_orders.py
"""

from __future__ import annotations

import argparse
import fcntl
import logging
import os
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ekorn.common import JobStatus, Types, WatermarkStrategy
from ekorn.common.serialization import Encoder
from ekorn.datastream import ExternalizedCheckpointRetention, KeyedProcessFunction, StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.datastream.connectors.file_system import FileSink, RollingPolicy
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.errors import JobCancelledError

CUSTOMERS = 500
PRODUCTS = ("acorn", "beechnut", "hazelnut", "walnut")
OVER = "\r\033[K" if sys.stdout.isatty() else ""  # erases the line that is written over
FOLDER = Path(__file__).resolve().parents[1] / "build" / "demo"


def order(number: int) -> tuple[int, str, str, int]:
    """Return an order: number, customer, product, cents. All depend on the number alone, so it can be read again."""
    return number, f"customer-{number * 7919 % CUSTOMERS:03d}", PRODUCTS[number % 4], 100 + number * 31 % 900


class Revenue(KeyedProcessFunction):
    """Keeps the number of orders and the revenue of each customer."""

    def open(self, runtime_context):
        self.state = runtime_context.get_state(ValueStateDescriptor("revenue", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value, ctx):
        number, customer, _product, cents = value
        orders, total = self.state.value() or (0, 0)
        self.state.update((orders + 1, total + cents))
        yield f"{number},{customer},{orders + 1},{total + cents}"


def build(env: StreamExecutionEnvironment, orders: int, per_second: float, output: Path) -> None:
    """Draw the job: orders -> revenue per customer -> files, exactly once."""
    source = DataGeneratorSource(order, orders, RateLimiterStrategy.per_second(per_second))
    sink = FileSink.for_row_format(str(output), Encoder.simple_string_encoder())
    sink.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())  # lines are visible at the next checkpoint
    (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "orders")
        .uid("orders")
        .key_by(lambda value: value[1])
        .process(Revenue(), output_type=Types.STRING())
        .name("revenue per customer")
        .uid("revenue")
        .sink_to(sink.build())
        .name("files")
        .uid("files")
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job, kill a slot on the way, and compare the lines on disk; return 0 if they are right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=15.0, help="the seconds for which orders stream in")
    parser.add_argument("--rate", type=float, default=20_000.0, help="orders per second")
    parser.add_argument("--no-kill", action="store_true", help="do not kill a slot")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where revenue and checkpoints go")
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parser.parse_args(arguments)
    orders, folder = int(options.seconds * options.rate), options.folder.resolve()
    output, checkpoints = folder / "revenue", folder / "checkpoints"

    env = StreamExecutionEnvironment.get_execution_environment()
    env.get_configuration().set_string("ekorn.progress", "off")  # this program has a line of its own
    env.set_parallelism(2)
    env.enable_checkpointing(1000)
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(checkpoints))
    retention = ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION  # a job that is cancelled can be resumed
    env.get_checkpoint_config().set_externalized_checkpoint_retention(retention)
    build(env, orders, options.rate, output)

    with alone_in(folder):
        if not continues(env, checkpoints):
            shutil.rmtree(output, ignore_errors=True)
            shutil.rmtree(checkpoints, ignore_errors=True)
        earlier = len(lines_in(output))
        say(f"{orders - earlier:,} orders at {options.rate:,.0f} a second, 2 slots, a checkpoint every second.")
        say("Spark starts ...")
        logging.basicConfig(stream=sys.stdout, format=f"{OVER}  %(message)s")  # such as why the job restarts
        job = env.execute_async("live orders")
        try:
            watch(job, orders, earlier, kill=not options.no_kill)
        except KeyboardInterrupt:
            say("  Ctrl-C: the job is cancelled ...")
            job.cancel()
        with suppress(JobCancelledError):
            job.get_job_execution_result().result()
        return report(job.get_progress(), lines_in(output), orders, earlier, shlex.join([sys.argv[0], *arguments]))


@contextmanager
def alone_in(folder: Path):
    """Make the folder and keep other runs out of it."""
    mark = folder / "demo.lock"
    if folder.exists() and any(folder.iterdir()) and not mark.exists():
        sys.exit(f"{folder} holds files of something else: give --folder a new or empty folder")
    folder.mkdir(parents=True, exist_ok=True)
    with mark.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"another run writes to {folder}: wait for its end, or give --folder another folder")
        yield


def continues(env: StreamExecutionEnvironment, checkpoints: Path) -> bool:
    """Return whether the job starts from a savepoint (`ekorn run -s`) or a checkpoint (`ekorn run --resume`)."""
    settings = env.get_configuration()
    resumes = settings.get_boolean("ekorn.resume", False) and any(checkpoints.rglob("_metadata"))
    return resumes or settings.contains_key("execution.state-recovery.path")


def watch(job, orders: int, earlier: int, *, kill: bool) -> None:
    """Show the progress until the job has ended; kill a slot when half of the orders are read."""
    began, killed, tenths = time.monotonic(), not kill or earlier > orders // 2, 10 * earlier // orders
    while not job.get_job_status().result().is_globally_terminal_state():
        seen = job.get_progress()
        read = earlier + seen.records_read
        if not killed and read > orders // 2 and seen.checkpoints_completed > 0:
            os.kill(seen.slot_pids[0], signal.SIGKILL)
            say(f"  kill -9 {seen.slot_pids[0]}  (a slot process, at {read:,} orders)")
            killed = True
        line = (
            f"{read:>9,} orders   epoch {seen.epochs:>4} ({seen.last_epoch_ms:4.0f} ms)   "
            f"checkpoint {seen.last_checkpoint_id or 0:>3} ({seen.last_checkpoint_ms:3.0f} ms, "
            f"{seen.last_checkpoint_bytes / 1024:.0f} KB)   restarts {seen.restarts}   "
            f"{time.monotonic() - began:4.1f} s"
        )
        if OVER:
            done = 30 * read // orders
            print(f"{OVER}  [{'#' * done}{'.' * (30 - done)}] {line}", end="", flush=True)
        elif 10 * read // orders > tenths:
            tenths = 10 * read // orders
            say(f"  {10 * tenths:>3} % {line}")
        time.sleep(0.2)
    if OVER:
        print()  # the last line of progress stays


def say(text: str) -> None:
    """Print a line at once, on a terminal in place of the line of progress."""
    print(f"{OVER}{text}", flush=True)


def lines_in(output: Path) -> list[tuple[int, str, int, int]]:
    """Return the committed lines: number of the order, customer, orders of the customer so far, their cents."""
    lines = (line.split(",") for part in output.rglob("part-*") for line in part.read_text().splitlines())
    return [(int(number), customer, int(count), int(total)) for number, customer, count, total in lines]


def expected(numbers: Iterable[int]) -> dict[str, tuple[int, int]]:
    """Compute the orders and revenue of each customer in plain Python."""
    totals: dict[str, tuple[int, int]] = {}
    for number in numbers:
        _number, customer, _product, cents = order(number)
        count, total = totals.get(customer, (0, 0))
        totals[customer] = count + 1, total + cents
    return totals


def report(progress, lines: list[tuple[int, str, int, int]], orders: int, earlier: int, program: str) -> int:
    """Print the result; return 0 if every order that is due is there exactly once and every revenue is right."""
    numbers = {number for number, *_ in lines}
    twice = len(lines) - len(numbers)
    found: dict[str, tuple[int, int]] = {}
    for _number, customer, count, total in lines:
        found[customer] = max(found.get(customer, (0, 0)), (count, total))
    if progress.stopped_with is not None:
        due = earlier + progress.records_read - twice  # all that was read before the savepoint
    elif progress.status is JobStatus.CANCELED:
        due = sum(count for count, _ in found.values())  # all that was counted before the last checkpoint
    else:
        due = orders
    lost, wanted = max(0, due - len(numbers)), expected(numbers)
    wrong = sum(1 for customer, total in wanted.items() if found[customer] != total)
    say(f"  {len(lines):,} lines on disk, {progress.checkpoints_completed} checkpoints, {progress.restarts} restart(s)")
    say(f"  {lost} orders lost, {twice} counted twice, {wrong} of {len(wanted)} customers with a wrong total")
    if twice and earlier:
        say("  The files held orders from after the starting point: continue from the newest one, or start over.")
    elif len(numbers) < orders and not lost:
        how = "Stopped with a savepoint" if progress.stopped_with else "Cancelled"
        say(f"  {how}; {orders - len(numbers):,} orders are still to come. To continue:")
        start = progress.stopped_with or progress.last_checkpoint_path
        say(
            f"  ekorn run -s {start} {program}" if start else f"  no checkpoint was completed, so start over: {program}"
        )
    return 1 if lost or twice or wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("Ctrl-C before the job had started")
