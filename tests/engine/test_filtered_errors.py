"""What Spark's processes write to standard error reaches the driver's, except for what concerns no user."""

import subprocess
import sys
from pathlib import Path

import pytest

from ekorn.engine.spark.driver_side.java_process import WantedLines

SOURCE = Path(__file__).parents[2] / "src"

PROGRAM = """
import subprocess, sys
from ekorn.engine.spark.driver_side.java_process import errors_without_spark_s_own

child = '''
import os, sys, time
write = lambda text: os.write(2, text.encode())
write("first\\\\nWARNING: Using incub")
time.sleep(0.1)  # a line arrives in parts
write("ator modules: jdk.incubator.vector\\\\nWARNING: another")
time.sleep(0.1)
write(" one\\\\n")
sys.stdin.read()
write("WARNING: Using incubator modules: jdk.incubator.vector\\\\nlater\\\\nno end of line")
'''
with errors_without_spark_s_own():
    process = subprocess.Popen([sys.executable, "-c", child], stdin=subprocess.PIPE)
input()
print("the driver's own", file=sys.stderr, flush=True)
process.communicate()
input()
"""


def test_everything_but_one_line_passes_through_in_order():
    driver = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        env={"PYTHONPATH": str(SOURCE)},
    )
    assert driver.stdin is not None and driver.stderr is not None
    written = b""
    for part in (b"first\nWARNING: another one\n", b"the driver's own\nlater\nno end of line"):
        wanted = len(written) + len(part)
        while len(written) < wanted and (more := driver.stderr.read(wanted - len(written))):
            written += more
        driver.stdin.write(b"\n")  # the program goes on when this much has passed through
    written += driver.communicate(timeout=60)[1]
    assert written.decode() == "first\nWARNING: another one\nthe driver's own\nlater\nno end of line"
    assert driver.returncode == 0


DAEMON = (
    "Traceback (most recent call last):\n"
    '  File "/x/pyspark.zip/pyspark/daemon.py", line 264, in manager\n'
    '  File "/x/pyspark.zip/pyspark/daemon.py", line 95, in worker\n'
    "BrokenPipeError: [Errno 32] Broken pipe\n"
)
ANOTHER = 'Traceback (most recent call last):\n  File "/x/pyspark.zip/pyspark/daemon.py", line 1\nMemoryError\n'
USERS = 'Traceback (most recent call last):\n  File "/x/mine.py", line 1\nBrokenPipeError: [Errno 32] Broken pipe\n'


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        (f"a\n{DAEMON}b\n", "a\nb\n"),
        (DAEMON * 2, ""),
        (ANOTHER, ANOTHER),
        (USERS, USERS),
        (USERS + DAEMON + "Trace", USERS + "Trace"),
        ("Traceback (most recent call last):\n" + ANOTHER, "Traceback (most recent call last):\n" + ANOTHER),
    ],
)
def test_the_tracebacks_of_workers_whose_task_was_cancelled_are_left_out(written, wanted, size):
    lines = WantedLines()
    parts = [written[start : start + size].encode() for start in range(0, len(written), size)]
    assert b"".join([*map(lines.of, parts), lines.rest()]).decode() == wanted


def test_a_part_of_a_line_passes_as_soon_as_it_can_be_nothing_unwanted():
    lines = WantedLines()
    assert [lines.of(b"WARN"), lines.of(b"ING: other")] == [b"", b"WARNING: other"]
