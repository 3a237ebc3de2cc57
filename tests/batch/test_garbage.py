"""Cyclic garbage that functions of DataSet programs leave behind in a task, whatever its size."""

from __future__ import annotations

import subprocess
import sys

import pytest

TASK = "from tests.batch.leaving_cycles import main; main()"


@pytest.mark.heavy
def test_a_task_collects_garbage_when_its_process_has_grown_and_stops_to_look_at_its_end() -> None:
    done = subprocess.run([sys.executable, "-c", TASK], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "collected\n1 ['MainThread']\n", done.stderr


OVERLAPPING = """
import threading
from ekorn.garbage import collecting_by_growth

def watches():
    return sum(each.name == "garbage-watch" and each.is_alive() for each in threading.enumerate())

first, second = collecting_by_growth(), collecting_by_growth()
first.__enter__()
second.__enter__()
print(watches())
first.__exit__(None, None, None)
print(watches())
watch, = [each for each in threading.enumerate() if each.name == "garbage-watch"]
second.__exit__(None, None, None)
watch.join(30)
print(watches())
with collecting_by_growth():
    print(watches())
"""


def test_blocks_that_overlap_share_one_watch_until_the_last_one_ends() -> None:
    command = [sys.executable, "-c", OVERLAPPING]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == ["1", "1", "0", "1"], done.stderr
