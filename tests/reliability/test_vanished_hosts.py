"""A host that vanishes from the network: no connection is closed, and nobody hears anything any more.

A slot runs in a network namespace of its own, which is another host to it. Then packets no longer get there.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from functools import partial
from pathlib import Path

from ekorn.common import JobClient, JobStatus
from ekorn.engine.slots.epoch_engine import EpochSlotEngine
from ekorn.engine.slots.registering_pool import RegisteringSlotPool
from ekorn.engine.slots.slot_calls import SlotCalls
from ekorn.engine.slots.slot_handle import Heartbeat
from ekorn.engine.spark.task_side.launch_slots import launch_slots
from ekorn.graph.job_graph import JobGraph
from ekorn.slot_protocol.slot_config import DriverContact
from ekorn.testing.process_engine import ProcessLevels
from ekorn.testing.slot_processes import ThisMachine
from tests.live_jobs import Held, engines, environment, expected_tally, generated, is_running, tallied, until
from tests.reliability.other_host import HERE, OtherHost, other_host  # noqa: F401

KEYS = 7
RECORDS = 3_000


class Split(EpochSlotEngine):
    """Has slot 1 on the other host, and its replacements here."""

    def __init__(self, graph: JobGraph, host: OtherHost, timeout_s: float) -> None:
        self.starts: list[list[int]] = []
        self._other_host = host
        heartbeat = Heartbeat(interval_s=0.2, timeout_s=timeout_s)
        calls = SlotCalls(RegisteringSlotPool(2, HERE, self._launch, heartbeat))
        super().__init__(graph, calls, ThisMachine(), ProcessLevels(calls), heartbeat.stall_timeout_s)

    def _launch(self, driver: DriverContact, numbers: list[int]) -> None:
        self.starts.append(numbers)
        there = [number for number in numbers if len(self.starts) == 1 and number == 1]
        if there:
            self._other_host.launch(driver, there)
        for _ in launch_slots(driver, [number for number in numbers if number not in there]):
            pass


def test_a_job_whose_slots_vanish_with_their_host_is_exact_and_the_slots_end(
    other_host: OtherHost,  # noqa: F811
    tmp_path: Path,
) -> None:
    env = environment(tmp_path / "checkpoints", parallelism=2, restarts=20)
    held = Held(tmp_path, RECORDS // 8, per_second=500)
    stream = tallied(generated(env, RECORDS, held), KEYS)
    with engines(lambda graph: Split(graph, other_host, timeout_s=8.0)) as made:
        collected = stream.execute_and_collect()
        client = collected.job_client
        until(lambda: client.get_progress().checkpoints_completed > 1)
        lost = made[0].slot_pids[1]
        try:
            assert is_running(lost)
            other_host.vanish()
            held.let_go()
            found = list(collected)
            until(lambda: not is_running(lost))  # nobody can tell it to end
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(lost, signal.SIGKILL)
    assert sorted(found) == sorted(expected_tally(RECORDS, KEYS))
    assert isinstance(made[0], Split) and made[0].starts == [[0, 1], [1]]
    failure = client.get_progress().last_failure
    assert failure is not None and "slot 1" in failure and "heartbeat" in failure


def has_completed(client: JobClient, checkpoints: int) -> bool:
    if client.get_job_status().result() == JobStatus.FAILED:
        client.get_job_execution_result().result()  # raises what failed
    return client.get_progress().checkpoints_completed >= checkpoints


def test_packets_lost_for_a_second_cost_no_restart_and_no_record(
    other_host: OtherHost,  # noqa: F811
    tmp_path: Path,
) -> None:
    """What is sent meanwhile is lost, and TCP sends it again: driver and slot hear each other within the timeout."""
    env = environment(tmp_path / "checkpoints", parallelism=2)  # and no restart
    held = Held(tmp_path, RECORDS - 1, per_second=500)
    stream = tallied(generated(env, RECORDS, held), KEYS)
    with engines(lambda graph: Split(graph, other_host, timeout_s=30.0)) as made:
        collected = stream.execute_and_collect()
        client = collected.job_client
        for outage in (1, 2):
            until(partial(has_completed, client, 2 * outage))
            other_host.vanish()
            time.sleep(1.0)  # the length of the fault
            other_host.come_back()
        held.let_go()
        found = list(collected)
    assert sorted(found) == sorted(expected_tally(RECORDS, KEYS))
    assert isinstance(made[0], Split) and made[0].starts == [[0, 1]]
