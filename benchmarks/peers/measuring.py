"""The common part of the benchmark scripts: the command line, the time limit, the line of JSON at the end.

The workloads are the same for every engine. Records are pairs made from the numbers i = 0 .. records-1:
("user_%d" % (i * 7919 % keys), i).

    keyed-count      by key: read the count, write it plus one, emit (key, count)
    rolling-reduce   by key: emit the pair of the key and the sum of the values so far
    co-process       even and odd pairs connected, by key: one side adds to a count, the other subtracts; emit the count
    broadcast        ten rules broadcast; by key: read the rule of the number's last digit, count, emit (key, count)
    stateless-chain  map to the pair, filter (keeps the even i), map (value * 3), flat_map (the pair and its negative)

The event time in milliseconds is t = j + 5000 * (j // 10000), where j = i % (records / 2). Two subtasks read the two
halves of the sequence with the same times, and there is a pause of five seconds every ten seconds:

    tumbling         by key, windows of 10 s: the sum of the values
    sliding          by key, windows of 10 s every 2 s: the sum of the values
    session          by key, sessions with a gap of 2 s: the sum of the values
    timers           by key, a timer a second after each record; when it fires, emit (key, time)

Results are discarded. The seconds are those of one job that reads and processes all records, after a small job of the
same kind has warmed the engine up: the start of the JVM and of the session do not count, the start of the job does.
"""

import argparse
import json
import os
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any

WORKLOADS = (
    "keyed-count",
    "rolling-reduce",
    "stateless-chain",
    "tumbling",
    "sliding",
    "session",
    "timers",
    "co-process",
    "broadcast",
)
WARM_UP_RECORDS = 2_000


def arguments(engine: str, apis: tuple[str, ...]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=f"run one benchmark workload on {engine}, print one line of JSON")
    parser.add_argument("--workload", choices=WORKLOADS, required=True)
    parser.add_argument("--api", choices=apis, default=apis[0])
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--keys", type=int, default=1_000)
    parser.add_argument("--parallelism", type=int, default=2)
    parser.add_argument(
        "--limit-seconds",
        type=float,
        default=None,
        help="give up after so many seconds of the measured job and report an upper bound",
    )
    options = parser.parse_args()
    if options.records <= WARM_UP_RECORDS:
        parser.error(f"--records must exceed the {WARM_UP_RECORDS} of the warm-up job")
    return options


def measure(
    engine: str,
    options: argparse.Namespace,
    job: Callable[[int], None],
    prepare: Callable[[int], None] = lambda records: None,
) -> None:
    """Warm up with a small `job(records)`, run the requested one, and print the result. `prepare` is not timed."""
    facts = {
        "engine": engine,
        "api": options.api,
        "workload": options.workload,
        "records": options.records,
        "keys": options.keys,
        "parallelism": options.parallelism,
    }
    prepare(WARM_UP_RECORDS)
    prepare(options.records)
    facts["load_before"] = round(os.getloadavg()[0], 1)  # the load of the machine from other processes
    started = time.perf_counter()
    job(WARM_UP_RECORDS)
    warm_up = time.perf_counter() - started
    with Limit(options.limit_seconds, options.records, facts):
        started = time.perf_counter()
        job(options.records)
        seconds = time.perf_counter() - started
    tell(
        facts
        | {
            "seconds": round(seconds, 3),
            "records_per_second": round(options.records / seconds),
            "warm_up_seconds": round(warm_up, 3),
        }
    )


class Limit(AbstractContextManager["Limit"]):
    """Ends the process if the body takes too long. Processes that the engine started notice and end too."""

    def __init__(self, seconds: float | None, records: int, facts: dict[str, Any]) -> None:
        self._timer = None if seconds is None else threading.Timer(seconds, self._give_up, (seconds, records, facts))

    def __enter__(self) -> "Limit":
        if self._timer:
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._timer:
            self._timer.cancel()

    @staticmethod
    def _give_up(seconds: float, records: int, facts: dict[str, Any]) -> None:
        # Not all records were processed, so the true rate is lower.
        tell(facts | {"timed_out": True, "seconds": seconds, "records_per_second_at_most": round(records / seconds)})
        os._exit(3)


def tell_ages(folder: str) -> None:
    """Print percentiles of the ages that the last operators have written, one file each: of the second half."""
    ages: list[float] = []
    for file in Path(folder).iterdir():
        found = [float(line) for line in file.read_text().splitlines()]
        ages += found[len(found) // 2 :]  # without the start of the job
    ages.sort()
    tell({"records": len(ages)} | {f"p{p}_ms": 1000 * ages[len(ages) * p // 100] for p in (50, 90, 99)})


def tell(facts: dict[str, Any]) -> None:
    print(json.dumps(facts), flush=True)
