"""Point reads of state beside a running job: how many, how long each takes, and what they cost the job.

    python -m benchmarks.queries --execution continuous --reads 20000

The job counts by key in one slot, at its full throughput. Clients in other processes ask for random keys at a steady
rate, and rest, in turns: machines change their speed, so each turn is compared with the ones before and after it. With
`--own-core` the slot has a processor that nothing else uses, as where clients run on other machines. `*_cores` are the
processors that slot, driver, clients and the whole machine kept busy.
"""

from __future__ import annotations

import argparse
import collections
import glob
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import time
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple

from ekorn.common import Configuration, Types, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.number_seq import NumberSequenceSource
from ekorn.datastream.functions import KeyedProcessFunction
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.errors import QueryError
from ekorn.queryable import QueryableStateClient

KEYS = 100_000
_MOST_UNANSWERED = 20_000  # keys of one client
_UNCOUNTED_S = 1.0
_START_S = 5.0  # for the clients
_EDGE_S = 0.3  # of a turn: the driver learns what a job has read five times a second
_TICKS = os.sysconf("SC_CLK_TCK")
COUNT = ValueStateDescriptor("count", Types.LONG(), 0)
COUNT.set_queryable("count")


class Count(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(COUNT)

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.count.update(self.count.value() + 1)
        return iter(())


def ask(options: argparse.Namespace) -> dict[str, Any]:
    """Ask for random keys at a steady rate in every second turn; return how many calls took how long.

    The client does not wait for an answer before it asks again, as a server with many users would not. Calls in the
    first second are not counted: the connection is being opened, and modules are being loaded.
    """
    client, chance = QueryableStateClient(port=options.port), random.Random(options.port)
    took: collections.Counter[int] = collections.Counter()  # in tenths of a millisecond
    size, calls, answered, asked_s, used_s = options.keys_at_once, 0, 0, 0.0, 0.0

    def done(future: Future[Any], started: float) -> None:
        nonlocal answered
        if future.exception() is not None:
            return  # the client was shut down before the answer
        answered += 1
        if started >= counted_from:
            took[int((time.monotonic() - started) * 10_000)] += 1

    counted_from = options.began + options.seconds + _UNCOUNTED_S
    for turn in range(1, 2 * options.turns, 2):
        begins = options.began + turn * options.seconds
        time.sleep(max(0.0, begins - time.monotonic()))
        used, earlier = time.process_time(), calls
        while (now := time.monotonic()) < begins + options.seconds:
            due = earlier + int((now - begins) * options.reads / size)
            while calls < min(due, answered + _MOST_UNANSWERED // size):
                calls += 1
                keys = [chance.randrange(KEYS) for _ in range(size)]
                asked = partial(done, started=time.monotonic())
                if size == 1:
                    client.get_kv_state(options.ask, "count", keys[0], None, COUNT).add_done_callback(asked)
                else:
                    client.get_kv_states(options.ask, "count", keys, None, COUNT).add_done_callback(asked)
            time.sleep(0.001)
        asked_s += now - begins
        used_s += time.process_time() - used
    client.shutdown()
    return {"reads_per_second": answered * size / asked_s, "took": took, "cores": used_s / asked_s}


class Usage(NamedTuple):
    """What a job has read, and the seconds of processors that its slot, this driver and all programs have used."""

    at: float
    records: float
    slot: float
    driver: float
    machine: float

    @staticmethod
    def now(job: Any) -> Usage:
        """Return what has been used until now: the moment at which the driver learns what an epoch has read."""
        known = job.get_progress().records_read
        while (progress := job.get_progress()).records_read == known:
            time.sleep(0.002)
        (slot,) = progress.slot_pids
        with open(f"/proc/{slot}/stat") as of_slot, open("/proc/stat") as of_machine:
            used = of_slot.read().rsplit(")", 1)[1].split()[11:13]
            user, nice, system, _, _, *rest = map(int, of_machine.readline().split()[1:8])
        slot_s, machine_s = sum(map(int, used)) / _TICKS, sum((user, nice, system, *rest)) / _TICKS
        return Usage(time.monotonic(), progress.records_read, slot_s, time.process_time(), machine_s)

    def rate_until(self, later: Usage) -> Usage:
        """Return what was used in a second, between two moments."""
        elapsed = later.at - self.at
        return Usage(elapsed, *((b - a) / elapsed for a, b in zip(self[1:], later[1:], strict=True)))


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return what clients get while a job runs, and what the job reads with and without them."""
    configuration = Configuration()
    configuration.set_string("queryable-state.enable", "true")
    configuration.set_string("queryable-state.proxy.ports", "0")
    configuration.set_string("ekorn.execution", options.execution)
    configuration.set_string("state.backend", options.backend)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(1)
    source = NumberSequenceSource(0, 10**12)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    numbers.key_by(lambda n: n % KEYS, Types.LONG()).process(Count())
    job = env.execute_async("queries")
    address = job.get_queryable_state_address()
    assert address is not None, "queries are enabled"
    wait_until_counted(QueryableStateClient(address.host, address.port, address.token), job)
    if options.own_core:
        give_core(*job.get_progress().slot_pids)
    began = time.monotonic() + _START_S  # also until the caches are warm and the pace is found
    command = [sys.executable, "-m", "benchmarks.queries", "--ask", str(job.get_job_id()), "--port", str(address.port)]
    command += ["--reads", str(options.reads // options.clients), "--keys-at-once", str(options.keys_at_once)]
    command += ["--seconds", str(options.seconds), "--turns", str(options.turns), "--began", str(began)]
    asking = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(options.clients)]
    turns = [
        usage_in_turn(job, began + turn * options.seconds, options.seconds) for turn in range(2 * options.turns + 1)
    ]
    found = [json.loads(client.communicate(timeout=60)[0]) for client in asking]
    job.cancel().result()
    return result(turns, found)


def usage_in_turn(job: Any, begins: float, seconds: float) -> Usage:
    """Return what the job reads and uses in a second, within a turn. Its first and last moments do not count."""
    time.sleep(max(0.0, begins + _EDGE_S - time.monotonic()))
    before = Usage.now(job)
    time.sleep(max(0.0, begins + seconds - _EDGE_S - time.monotonic()))
    return before.rate_until(Usage.now(job))


def result(turns: list[Usage], found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what clients got, and which part of its throughput the job kept: the median of the turns, and each."""
    alone, asked = turns[::2], turns[1::2]
    undisturbed = [(before.records + after.records) / 2 for before, after in itertools.pairwise(alone)]
    parts = [turn.records / rate for turn, rate in zip(asked, undisturbed, strict=True)]
    return {
        "reads_per_second": sum(each["reads_per_second"] for each in found),
        "alone": statistics.median(turn.records for turn in alone),
        "asked": statistics.median(turn.records for turn in asked),
        "part": statistics.median(parts),
        "parts": [round(part, 3) for part in parts],
        **percentiles(found),
        "slot_cores": statistics.mean(turn.slot for turn in asked),
        "driver_cores": statistics.mean(turn.driver for turn in asked),
        "client_cores": sum(each["cores"] for each in found),
        "machine_cores": statistics.mean(turn.machine for turn in asked),
        "alone_slot_cores": statistics.mean(turn.slot for turn in alone),
        "alone_driver_cores": statistics.mean(turn.driver for turn in alone),
        "alone_machine_cores": statistics.mean(turn.machine for turn in alone),
    }


def give_core(slot: int) -> None:
    """Let a slot run on one processor, and this program and all that it starts on the others."""
    first, *others = sorted(os.sched_getaffinity(0))
    below: list[int] = [os.getpid()]
    for pid in below:
        for children in glob.glob(f"/proc/{pid}/task/*/children"):
            with open(children) as file:
                below += map(int, file.read().split())
    for pid in below:
        for thread in os.listdir(f"/proc/{pid}/task"):
            os.sched_setaffinity(int(thread), {first} if pid == slot else set(others))


def percentiles(found: list[dict[str, Any]]) -> dict[str, float]:
    """Return the median and the 99th percentile of the times that calls took."""
    took: collections.Counter[int] = collections.Counter()
    for each in found:
        took.update({int(tenths): count for tenths, count in each["took"].items()})
    ordered = sorted(took.elements())
    return {"p50_ms": ordered[len(ordered) // 2] / 10, "p99_ms": ordered[int(len(ordered) * 0.99)] / 10}


def wait_until_counted(client: QueryableStateClient, job: Any) -> None:
    while True:
        try:
            client.get_kv_state(job.get_job_id(), "count", KEYS - 1, None, COUNT).result(60)
            break
        except QueryError:
            time.sleep(0.1)
    client.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--execution", default="continuous", choices=("continuous", "epochs"))
    parser.add_argument("--backend", default="hashmap", choices=("hashmap", "rocksdb"))
    parser.add_argument("--seconds", type=float, default=4.0, help="of each turn")
    parser.add_argument("--turns", type=int, default=5, help="in which clients ask")
    parser.add_argument("--began", type=float, help="when the first turn begins; for clients")
    parser.add_argument("--reads", type=int, default=20_000, help="point reads in a second")
    parser.add_argument("--keys-at-once", type=int, default=1, help="keys of one call")
    parser.add_argument("--own-core", action="store_true", help="the slot has a processor that nothing else uses")
    parser.add_argument("--clients", type=int, default=1, help="processes that ask, each with a connection of its own")
    parser.add_argument("--ask", help="the id of a job to ask; without it, run the job")
    parser.add_argument("--port", type=int)
    options = parser.parse_args()
    print(json.dumps(ask(options) if options.ask else measure(options)))


if __name__ == "__main__":
    main()
