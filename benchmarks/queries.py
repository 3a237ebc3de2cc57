"""Point reads of state beside a running job: how many, how long each takes, and what they cost the job.

    python -m benchmarks.queries --execution continuous --seconds 10 --reads 20000 --keys-at-once 100

The job counts by key in one slot. It runs at its full throughput first, then with a client in another process that asks
for random keys at a steady rate.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from typing import Any

from tamias.common import Configuration, Types, WatermarkStrategy
from tamias.datastream import StreamExecutionEnvironment
from tamias.datastream.connectors.number_seq import NumberSequenceSource
from tamias.datastream.functions import KeyedProcessFunction
from tamias.datastream.state import ValueStateDescriptor
from tamias.errors import QueryError
from tamias.queryable import QueryableStateClient

KEYS = 100_000
COUNT = ValueStateDescriptor("count", Types.LONG(), 0)
COUNT.set_queryable("count")


class Count(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(COUNT)

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.count.update(self.count.value() + 1)
        return iter(())


def ask(options: argparse.Namespace) -> dict[str, float]:
    """Ask for keys at a steady rate; return how many were answered in a second, and how long a request took."""
    client = QueryableStateClient(port=options.port)
    chance, times_ms, answered = random.Random(7), [], 0
    interval_s = options.keys_at_once / options.reads
    began = due = time.monotonic()
    while time.monotonic() < began + options.seconds:
        keys = [chance.randrange(KEYS) for _ in range(options.keys_at_once)]
        started = time.monotonic()
        found = client.get_kv_states(options.ask, "count", keys, None, COUNT).result(60)
        times_ms.append((time.monotonic() - started) * 1000)
        answered += len(found)
        due += interval_s
        time.sleep(max(due - time.monotonic(), 0.0))
    elapsed = time.monotonic() - began
    client.shutdown()
    times_ms.sort()
    return {
        "reads_per_second": answered / elapsed,
        "p50_ms": times_ms[len(times_ms) // 2],
        "p99_ms": times_ms[int(len(times_ms) * 0.99)],
    }


def throughput(job: Any, seconds: float) -> float:
    """Return the records that the job reads in a second, over some seconds."""
    before, began = job.get_progress().records_read, time.monotonic()
    time.sleep(seconds)
    return float((job.get_progress().records_read - before) / (time.monotonic() - began))


def measure(options: argparse.Namespace) -> dict[str, float]:
    configuration = Configuration()
    configuration.set_string("queryable-state.enable", "true")
    configuration.set_string("queryable-state.proxy.ports", "0")
    configuration.set_string("tamias.execution", options.execution)
    configuration.set_string("state.backend", options.backend)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(1)
    numbers = env.from_source(
        NumberSequenceSource(0, 10**12), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG()
    )
    numbers.key_by(lambda n: n % KEYS, Types.LONG()).process(Count())
    job = env.execute_async("queries")
    address = job.get_queryable_state_address()
    assert address is not None, "queries are enabled"
    wait_until_counted(QueryableStateClient(address.host, address.port, address.token), job)
    time.sleep(options.seconds / 2)  # until the caches are warm and the pace is found
    alone = throughput(job, options.seconds)
    command = [sys.executable, "-m", "benchmarks.queries", "--ask", str(job.get_job_id()), "--port", str(address.port)]
    command += ["--reads", str(options.reads), "--keys-at-once", str(options.keys_at_once)]
    command += ["--seconds", str(options.seconds + 1)]
    asking = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # it finds the token of this user
    time.sleep(1.0)  # while the client starts
    asked = throughput(job, options.seconds)
    output, _ = asking.communicate(timeout=60)
    after = throughput(job, options.seconds)
    job.cancel().result()
    found = json.loads(output)
    undisturbed = (alone + after) / 2
    return found | {"alone": undisturbed, "asked": asked, "part": asked / undisturbed}


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
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--reads", type=int, default=20_000, help="point reads in a second")
    parser.add_argument("--keys-at-once", type=int, default=100)
    parser.add_argument("--ask", help="the id of a job to ask; without it, run the job")
    parser.add_argument("--port", type=int)
    options = parser.parse_args()
    print(json.dumps(ask(options) if options.ask else measure(options)))


if __name__ == "__main__":
    main()
