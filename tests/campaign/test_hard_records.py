"""Records that a function or its process cannot take: the job does not restart forever, and names the record."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

import pytest

from ekorn.common import RestartStrategies, Types
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.functions import MapFunction
from ekorn.errors import JobExecutionError
from ekorn.testing.process_engine import on_process_engine

RESTARTS = 2


def crash(value):
    return ctypes.string_at(0)


def leave(value):
    sys.exit("enough")


def vanish(value):
    os._exit(5)


def recurse(value):
    return recurse(value)


def refuse(value):
    raise ValueError(f"cannot do anything with {value}")


class Poisoned(MapFunction):
    """Calls a harmful function with one of the numbers, and counts the calls."""

    def __init__(self, deed, folder: Path) -> None:
        self.deed = deed
        self.folder = folder

    def map(self, value):
        if value == 700:
            (self.folder / f"try-{os.getpid()}-{len(list(self.folder.iterdir()))}").touch()
            self.deed(value)
        return value


@pytest.mark.parametrize(
    ("deed", "said"),
    [
        (refuse, r"cannot do anything with 700"),
        (recurse, r"RecursionError"),
        (leave, r"SystemExit: enough"),
        (vanish, r"slot 0.*exited with code 5"),
        (crash, r"slot 0.*killed by signal 11"),
    ],
)
def test_a_record_that_always_fails_ends_the_job_after_its_restarts(deed, said, tmp_path: Path) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.enable_checkpointing(50)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(RESTARTS, 0))
    env.from_collection(list(range(1_000)), Types.LONG()).map(Poisoned(deed, tmp_path)).name("poisoned").print()
    with on_process_engine(), pytest.raises(JobExecutionError, match=said) as raised:
        env.execute("poison")
    assert len(list(tmp_path.iterdir())) == RESTARTS + 1
    if deed in (refuse, recurse, leave):
        assert "'poisoned'" in str(raised.value)
        assert "700" in str(raised.value)


def test_a_record_of_64_megabytes_goes_through() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    big = env.from_collection([1, 2]).map(lambda n: bytes(64 << 20)).rebalance().map(len)
    with on_process_engine(), big.execute_and_collect() as found:
        assert list(found) == [64 << 20] * 2


def test_a_state_too_large_for_checkpoints_in_memory_says_its_size_and_the_limit() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.enable_checkpointing(10)
    env.set_restart_strategy(RestartStrategies.no_restart())
    stream = env.from_collection([1]).key_by(lambda n: n).map_with_state(lambda n, s: (n, "x" * (64 << 20)))
    with on_process_engine(), pytest.raises(JobExecutionError) as raised, stream.execute_and_collect() as found:
        list(found)
    assert "67,1" in str(raised.value) and "5,242,880" in str(raised.value)
    assert "execution.checkpointing.dir" in str(raised.value)
