"""The age of records at the sink on PyFlink: the job of `benchmarks/latency.py`, in PyFlink's own style.

    python -m benchmarks.peers.pyflink_latency --api thread --rate 1000 --seconds 60 [--levels 3] [--checkpoint-ms 1000]

PyFlink has no source in Python. A sequence of numbers is the source, and the first operator waits until a record is due
before it stamps and emits it. Buffers and bundles have PyFlink's defaults, unless `--buffer-timeout-ms` and
`--bundle-ms` are given.
"""

import argparse
import os
import sys
import sysconfig
import tempfile
import time
import uuid
from typing import Any

from benchmarks.peers.measuring import tell_ages

try:
    from pyflink.common import Configuration, Types, WatermarkStrategy
    from pyflink.datastream import KeyedProcessFunction, MapFunction, StreamExecutionEnvironment
    from pyflink.datastream.connectors.number_seq import NumberSequenceSource
    from pyflink.datastream.functions import FilterFunction
    from pyflink.datastream.state import ValueStateDescriptor
except ModuleNotFoundError as missing:
    raise SystemExit(
        "this script needs apache-flink: run it with the Python of an environment that has it"
    ) from missing

KEYS = 100
PARALLELISM = 2
STAMPED = Types.TUPLE([Types.LONG(), Types.DOUBLE()])


class Stamp(MapFunction):
    """Emits (key, now) at a rate: waits until a record is due."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._began = 0.0
        self._read = 0

    def map(self, value: int) -> Any:
        now = time.time()
        self._began = self._began or now
        due = self._began + self._read / self._rate
        self._read += 1
        if due > now:
            time.sleep(due - now)
        return value % KEYS, time.time()


class Count(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        yield value


class Age(FilterFunction):
    """Drops records, and writes their ages to a file in the end: the disk is busy with checkpoints before."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def open(self, runtime_context: Any) -> None:
        # PyFlink's runtime context does not know the subtask in thread mode: the call fails there.
        self._path = f"{self._folder}/{uuid.uuid4()}"
        self._ages: list[float] = []

    def filter(self, value: Any) -> bool:
        self._ages.append(time.time() - value[1])
        return False

    def close(self) -> None:
        with open(self._path, "w") as file:
            file.writelines(f"{age:.6f}\n" for age in self._ages)


def key_of(number: int) -> Any:
    return lambda value: value[0] + number


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--api", default="thread", choices=("thread", "process"))
    parser.add_argument("--rate", type=float, default=1_000.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--levels", type=int, default=2)
    parser.add_argument("--checkpoint-ms", type=int, default=0)
    parser.add_argument("--buffer-timeout-ms", type=int)
    parser.add_argument("--bundle-ms", type=int)
    options = parser.parse_args()
    os.environ["_python_worker_execution_mode"] = "process"  # noqa: SIM112  the name PyFlink reads
    if options.api == "thread":
        # The Python inside the JVM does not find the packages of this environment by itself.
        paths = [sysconfig.get_path("purelib"), os.environ.get("PYTHONPATH", "")]
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    configuration = Configuration()
    configuration.set_string("python.execution-mode", options.api)
    if options.bundle_ms is not None:
        configuration.set_string("python.fn-execution.bundle.time", str(options.bundle_ms))
    with tempfile.TemporaryDirectory() as folder:
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        env.set_python_executable(sys.executable)
        env.set_parallelism(PARALLELISM)
        if options.buffer_timeout_ms is not None:
            env.set_buffer_timeout(options.buffer_timeout_ms)
        if options.checkpoint_ms:
            env.enable_checkpointing(options.checkpoint_ms)
        last = int(options.rate * options.seconds) - 1
        numbers = env.from_source(
            NumberSequenceSource(0, last), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG()
        )
        stream = numbers.map(Stamp(options.rate / PARALLELISM), STAMPED)
        for number in range(options.levels - 1):
            stream = stream.key_by(key_of(number), Types.LONG()).process(Count(), STAMPED)
        stream.filter(Age(folder)).print()
        env.execute()
        tell_ages(folder)


if __name__ == "__main__":
    main()
