"""A program that ends without `execute()` is reminded once, however many environments it has had."""

import subprocess
import sys

PROGRAM = """
import gc

from ekorn.datastream import StreamExecutionEnvironment

for number in range(10):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection([number]).print()
    if number < 9:
        del env
        gc.collect()
"""


def test_a_program_that_made_many_environments_is_reminded_once() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr.count("ended without env.execute()") == 1
