"""Connections and slots are lost at difficult moments: the job notices, restarts, and gives the right results."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from ekorn.common.job_status import JobStatus
from ekorn.engine.slots.epoch_engine import EpochSlotEngine
from ekorn.engine.slots.slot_calls import SlotCalls
from ekorn.engine.slots.slot_handle import Heartbeat
from ekorn.graph.job_graph import JobGraph
from ekorn.operators.epoch import EpochOrder
from ekorn.testing.process_engine import ProcessLevels, on_process_engine
from ekorn.testing.slot_processes import ThisMachine, slot_processes
from tests.live_jobs import Held, engines, environment, expected_tally, generated, tallied

KEYS = 7


class Cut(EpochSlotEngine):
    """Cuts connections between driver and slots in the middle of some epochs."""

    def __init__(self, graph: JobGraph, what: str, epochs: set[int], held: Held) -> None:
        heartbeat = Heartbeat(0.1, 1.5)
        calls = SlotCalls(slot_processes(graph.slot_count, heartbeat, registering=True))
        self._process_levels = ProcessLevels(calls)
        super().__init__(graph, calls, ThisMachine(), self._process_levels, heartbeat.stall_timeout_s)
        self._what, self._epochs_to_cut, self.cuts = what, epochs, 0
        self._run_number, self._last_records = 0, held

    def run_epoch(self, order: EpochOrder) -> Any:
        self._run_number += 1
        if self._run_number in self._epochs_to_cut:
            self.cuts += 1
            threading.Timer(0.002, self._cut).start()
        return super().run_epoch(order)

    def _cut(self) -> None:
        half = self.pool.slots[: (len(self.pool.slots) + 1) // 2]
        lost: list[Any]
        match self._what:
            case "data":
                lost = self._process_levels.links[::2]
            case "requests":
                lost = [slot.control for slot in half]
            case "events":
                lost = [slot.events for slot in half]
            case "lifeline":
                lost = [slot.process.lifeline for slot in half]  # type: ignore[attr-defined]  # they registered
        for link in lost:
            link.shut_down()
        self._last_records.let_go()


@pytest.mark.parametrize("what", ["data", "requests", "events", "lifeline"])
def test_connections_lost_to_half_of_the_slots_cost_a_restart_and_no_record(what: str, tmp_path: Path) -> None:
    """Cut connections for blobs, for requests, for events, and the lifeline of a slot."""
    env = environment(tmp_path / "checkpoints", parallelism=2, restarts=20)
    records = 1_200
    held = Held(tmp_path, records // 8)
    stream = tallied(generated(env, records, held), KEYS)
    with engines(lambda graph: Cut(graph, what, {4}, held)) as made:
        collected = stream.execute_and_collect()
        found = list(collected)
    progress = collected.job_client.get_progress()
    assert made[0].cuts >= 1
    assert progress.status is JobStatus.FINISHED
    assert progress.restarts >= 1
    assert sorted(found) == sorted(expected_tally(records, KEYS))


def test_a_slot_killed_when_only_the_last_checkpoint_is_left_is_noticed_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No epoch runs at that time, and without a check the checkpoint would time out after ten minutes."""
    marks = tmp_path / "marks"
    marks.mkdir()
    monkeypatch.setenv("EKORN_FAULT", "state-written:*:1:kill")
    monkeypatch.setenv("EKORN_FAULT_DIR", str(marks))
    env = environment(tmp_path / "checkpoints", parallelism=2, restarts=3, interval_ms=3_600_000)
    with on_process_engine(registering=True):
        collected = tallied(generated(env, 300), KEYS).execute_and_collect()
        found = list(collected)
    assert [mark.name for mark in marks.iterdir()] == ["state-written:*:1:kill"]
    progress = collected.job_client.get_progress()
    assert progress.status is JobStatus.FINISHED and progress.restarts == 1
    assert sorted(found) == sorted(expected_tally(300, KEYS))
