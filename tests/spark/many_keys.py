"""Writes a savepoint of many keys from a DataFrame and reads it back, in parallel, and watches the memory of the tasks.

    python -m tests.spark.many_keys 1000000 /tmp/many-keys

Prints a line of JSON: seconds, the processor time of Spark's Python processes in seconds, which other programs on the
machine change little, and the largest resident memory of one of these processes in MiB.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path

from pyspark.sql import SparkSession

from ekorn.state_processor.spark import register_state_sources

TASKS = 8


class WatchedTasks(threading.Thread):
    """Watches the resident memory and the processor time of the Python processes below this one."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak_mib = 0
        self._cpu_ticks: dict[int, int] = {}  # by process, those that have ended included

    def run(self) -> None:
        while True:
            for pid in _below(os.getpid()):
                try:
                    status = Path(f"/proc/{pid}/status").read_text()
                    times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue  # it has ended meanwhile
                if status.startswith("Name:\tpython"):
                    line = next((each for each in status.splitlines() if each.startswith("VmRSS:")), "VmRSS: 0 kB")
                    self.peak_mib = max(self.peak_mib, int(line.split()[1]) >> 10)
                    self._cpu_ticks[pid] = int(times[11]) + int(times[12])  # in user code, and in the system
            time.sleep(0.2)

    def cpu_s(self) -> float:
        """Return the processor time of all tasks until now."""
        return sum(self._cpu_ticks.values()) / os.sysconf("SC_CLK_TCK")


def _below(pid: int) -> list[int]:
    """Return the processes that descend from one."""
    parents: dict[int, int] = {}
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                parents[int(each.name)] = int((each / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue  # it has ended meanwhile
    found = [pid]
    for parent in found:
        found += [child for child, above in parents.items() if above == parent]
    return found[1:]


def main(count: int, path: str) -> None:
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    register_state_sources(spark)
    tasks = WatchedTasks()
    tasks.start()
    began = time.monotonic()
    rows = spark.range(0, count, 1, TASKS).selectExpr("id as key", "id * 2 as doubled", "array(id) as listed")
    options = {"operatorUid": "many", "parallelism": str(4 * TASKS)}
    rows.write.format("ekorn-state").options(**options).mode("append").save(path)
    written, write_cpu_s = time.monotonic(), tasks.cpu_s()
    state = spark.read.format("ekorn-state").option("operatorUid", "many").load(path)
    found = state.selectExpr("count(*) n", "sum(doubled) s", "sum(listed[0]) l").collect()[0]
    read = time.monotonic()
    assert (found.n, found.s, found.l) == (count, count * (count - 1), count * (count - 1) // 2), found
    seconds = {"write_s": written - began, "read_s": read - written}
    cpu_seconds = {"write_cpu_s": write_cpu_s, "read_cpu_s": tasks.cpu_s() - write_cpu_s}
    figures = {name: round(value, 1) for name, value in {**seconds, **cpu_seconds}.items()}
    print("FOUND " + json.dumps({"keys": count, **figures, "peak_mib": tasks.peak_mib}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
