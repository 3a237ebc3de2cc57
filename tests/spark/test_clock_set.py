"""The clock is set while a job runs on Spark: the driver, Java, Python workers and slots all see it jump."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.spark.processes import run_driver

pytestmark = [pytest.mark.spark, pytest.mark.soak]

# Adds the seconds in a file, which all processes share, to the time of day; the steady clocks stay as they are.
SETTABLE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static volatile long *ahead_s = 0;
static int (*system_gettime)(clockid_t, struct timespec *) = 0;

__attribute__((constructor)) static void begin(void) {
    int file = open(getenv("SET_CLOCK"), O_RDONLY | O_CLOEXEC);
    void *mapped = file < 0 ? MAP_FAILED : mmap(0, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
    system_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    if (mapped != MAP_FAILED) ahead_s = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *found) {
    if (!system_gettime) system_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = system_gettime(clock, found);
    if (!failed && ahead_s && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) found->tv_sec += *ahead_s;
    return failed;
}

int gettimeofday(struct timeval *restrict found, void *restrict zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    found->tv_sec = now.tv_sec;
    found->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *found) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (found) *found = now.tv_sec;
    return now.tv_sec;
}
"""

PROGRAM = """
import json, os, struct, sys, time
from pathlib import Path
from tests.live_jobs import Held, until
from tests.spark import tally
from tests.spark.processes import descendants, is_slot

RECORDS, HOUR_S = 3_000, 3_600
folder, execution = Path(sys.argv[1]), sys.argv[2]
clock = Path(os.environ["SET_CLOCK"])

def clock_set(hours):
    with clock.open("r+b") as file:
        file.write(struct.pack("<q", hours * HOUR_S))

held = Held(folder, RECORDS // 2, per_second=200)
env = tally.build(RECORDS, held, folder, execution=execution, parallelism=2 if execution == "epochs" else 1)
client = env.execute_async("set clock")
began_s, seen = time.time(), []
try:
    for hours in (1, -1, 0):
        more = client.get_progress().checkpoints_completed + 3
        until(lambda: client.get_progress().checkpoints_completed >= more)
        clock_set(hours)
        from pyspark import SparkContext
        java_s = SparkContext._active_spark_context._jvm.java.lang.System.currentTimeMillis() / 1000
        seen.append([round((each - began_s) / HOUR_S) for each in (time.time(), java_s)])
    more = client.get_progress().checkpoints_completed + 3
    until(lambda: client.get_progress().checkpoints_completed >= more)
    slots = [pid for pid in descendants(os.getpid()) if is_slot(pid)]
    mapped = [b"settable.so" in Path(f"/proc/{pid}/maps").read_bytes() for pid in slots]
    held.let_go()
    client.get_job_execution_result().result(120)
finally:
    client.cancel()
ended = client.get_progress()
found = {"seen": seen, "slots": mapped, "restarts": ended.restarts, "failed": ended.checkpoints_failed}
print("FOUND " + json.dumps(found | {"wrong": tally.verify(RECORDS, folder)}))
"""


@pytest.mark.parametrize("execution", ["epochs", "continuous"])
def test_a_clock_that_is_set_costs_no_restart_no_checkpoint_and_no_record(tmp_path: Path, execution: str) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("without a C compiler, no library can set the clock of some processes alone")
    (tmp_path / "settable.c").write_text(SETTABLE)
    library, clock = tmp_path / "settable.so", tmp_path / "ahead"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(tmp_path / "settable.c"), "-ldl"]
    subprocess.run(command, check=True)
    clock.write_bytes(bytes(8))
    variables = {"LD_PRELOAD": str(library), "SET_CLOCK": str(clock)}
    driver = run_driver(PROGRAM, str(tmp_path), execution, env=variables)
    output, _ = driver.communicate(timeout=300)
    told = [line for line in output.splitlines() if line.startswith("FOUND ")]
    assert driver.returncode == 0 and told, output
    found = json.loads(told[0].removeprefix("FOUND "))
    assert found["seen"] == [[1, 1], [-1, -1], [0, 0]], "the clock of Python or of Java was not set"
    assert found["slots"] and all(found["slots"]), "the clock of the slots was not set"
    assert (found["restarts"], found["failed"], found["wrong"]) == (0, 0, [])
