"""Fraud alerts with keyed state and timers: a tiny payment that a large one follows within a minute is reported.

    python examples/fraud_detector.py                              (or: ekorn run -p 2 examples/fraud_detector.py)
    ekorn run --resume examples/fraud_detector.py --folder fraud  (after a crash of a run with the same folder)

A thief tries a stolen card with a tiny payment before the large one. The state holds the time of an account's last tiny
payment, and a timer reports a tiny payment that no other one follows within the minute. Alerts go to files, exactly
once. At the end they are compared with those that plain Python finds.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ekorn.common import Types, WatermarkStrategy
from ekorn.common.serialization import Encoder
from ekorn.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.datastream.connectors.file_system import FileSink
from ekorn.datastream.state import ValueStateDescriptor

ACCOUNTS = 211
TINY_CENTS, LARGE_CENTS = 100, 50_000
MINUTE_MS = 60_000


def payment(number: int) -> tuple[str, int, int]:
    """Return the account, cents and time of a payment. They depend on its number alone, so it can be read again."""
    account = number * (31 if number % 5 == 0 else 7919) % ACCOUNTS
    cents = (40, 60, 70_000, 90_000, 1_500, 2_300, 800, 4_200, 999, 3_100)[number * 37 // 7 % 10]
    return f"account-{account:03d}", cents, number * 250


class Detector(KeyedProcessFunction):
    """Remembers the last payment of an account if it was tiny, for a minute."""

    def open(self, runtime_context):
        self.tiny_at = runtime_context.get_state(ValueStateDescriptor("tiny at", Types.LONG()))

    def process_element(self, value, ctx):
        account, cents, time_ms = value
        tiny_at = self.tiny_at.value()
        if tiny_at is not None:
            self.tiny_at.clear()
            if time_ms <= tiny_at + MINUTE_MS:  # else the timer is due, and fires when the watermark arrives
                ctx.timer_service().delete_event_time_timer(tiny_at + MINUTE_MS)
                if cents >= LARGE_CENTS:
                    yield f"fraud,{account},{time_ms},{cents}"
        if cents < TINY_CENTS:
            self.tiny_at.update(time_ms)
            ctx.timer_service().register_event_time_timer(time_ms + MINUTE_MS)

    def on_timer(self, timestamp, ctx):
        if self.tiny_at.value() == timestamp - MINUTE_MS:
            self.tiny_at.clear()
        yield f"probe,{ctx.get_current_key()},{timestamp - MINUTE_MS},0"


def build(env: StreamExecutionEnvironment, payments: int, per_second: float, output: Path) -> None:
    """Draw the job: payments -> alerts per account -> files, exactly once."""
    source = DataGeneratorSource(payment, payments, RateLimiterStrategy.per_second(per_second))
    in_order = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value[2])
    sink = FileSink.for_row_format(str(output), Encoder.simple_string_encoder()).build()
    (
        env.from_source(source, in_order, "payments")
        .set_parallelism(1)  # keeps the payments of an account in order
        .key_by(lambda value: value[0])
        .process(Detector(), output_type=Types.STRING())
        .name("detector")
        .uid("detector")
        .sink_to(sink)
        .name("alerts")
    )


def expected(payments: int) -> list[str]:
    """Find the alerts in plain Python."""
    tiny: dict[str, int] = {}
    found = []
    for number in range(payments):
        account, cents, time_ms = payment(number)
        tiny_at = tiny.pop(account, None)
        if tiny_at is not None and time_ms > tiny_at + MINUTE_MS:
            found.append(f"probe,{account},{tiny_at},0")
        elif tiny_at is not None and cents >= LARGE_CENTS:
            found.append(f"fraud,{account},{time_ms},{cents}")
        if cents < TINY_CENTS:
            tiny[account] = time_ms
    return found + [f"probe,{account},{tiny_at},0" for account, tiny_at in tiny.items()]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job and compare its alerts; return 0 if none is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="the seconds for which payments stream in")
    parser.add_argument("--rate", type=float, default=2_000.0, help="payments per second")
    parser.add_argument("--folder", type=Path, help="where alerts and checkpoints go; else to a temporary folder")
    options = parser.parse_args(arguments)
    payments = int(options.seconds * options.rate)
    with tempfile.TemporaryDirectory(prefix="ekorn-fraud-") as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        env = StreamExecutionEnvironment.get_execution_environment()
        env.enable_checkpointing(500)
        env.get_checkpoint_config().set_checkpoint_storage_dir(str(folder / "checkpoints"))
        build(env, payments, options.rate, folder / "alerts")
        env.execute("fraud detector")
        found = [line for part in (folder / "alerts").rglob("part-*") for line in part.read_text().splitlines()]
    return report(payments, Counter(found), Counter(expected(payments)))


def report(payments: int, found: Counter[str], wanted: Counter[str]) -> int:
    """Print the result; return 0 if every alert on disk is there once and right."""
    frauds = sum(times for alert, times in found.items() if alert.startswith("fraud"))
    wrong = sum((found - wanted).values())
    print(f"{found.total():,} alerts on {payments:,} payments, {frauds:,} of them frauds")
    print(f"{wrong} wrong or twice, {(wanted - found).total():,} still to come")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
