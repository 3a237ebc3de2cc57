"""Reports of snapshots that an earlier attempt of a slot sends late do not count for the attempt that runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ekorn.common.job_status import JobStatus
from ekorn.engine.slots.continuous_engine import ContinuousSlotEngine
from ekorn.engine.slots.epoch_engine import EpochSlotEngine
from ekorn.engine.slots.slot_calls import SlotCalls
from ekorn.engine.slots.slot_handle import Heartbeat
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph
from ekorn.slot_protocol.slot_events import SlotEvent, SnapshotNotWritten, SnapshotWritten
from ekorn.testing.continuous_process_engine import ProcessFlows
from ekorn.testing.process_engine import ProcessLevels
from ekorn.testing.slot_processes import ThisMachine, slot_processes
from tests.live_jobs import engines, environment, expected_tally, generated, tallied

KEYS, RECORDS = 7, 600


def with_late_reports(events: list[SlotEvent]) -> list[SlotEvent]:
    """Return events, before each report of a snapshot one of the attempt before, which could not write it."""
    found: list[SlotEvent] = []
    for event in events:
        if isinstance(event, SnapshotWritten):
            subtask = SubtaskId(event.snapshot.vertex, event.snapshot.subtask)
            found.append(SnapshotNotWritten(event.checkpoint_id, event.attempt - 1, subtask, "of an earlier attempt"))
        found.append(event)
    return found


class LateEpochs(EpochSlotEngine):
    def __init__(self, graph: JobGraph) -> None:
        calls = SlotCalls(slot_processes(graph.slot_count))
        super().__init__(graph, calls, ThisMachine(), ProcessLevels(calls), Heartbeat().stall_timeout_s)

    def events(self) -> list[SlotEvent]:
        return with_late_reports(super().events())


class LateFlows(ContinuousSlotEngine):
    def __init__(self, graph: JobGraph) -> None:
        calls = SlotCalls(slot_processes(graph.slot_count))
        super().__init__(graph, calls, ThisMachine(), ProcessFlows(calls.pool), Heartbeat().stall_timeout_s)

    def events(self) -> list[SlotEvent]:
        return with_late_reports(super().events())


@pytest.mark.parametrize("engine", [LateEpochs, LateFlows], ids=["epochs", "continuous"])
def test_a_late_report_of_an_earlier_attempt_neither_aborts_nor_completes_a_checkpoint(
    engine: Any, tmp_path: Path
) -> None:
    mark = tmp_path / "failed"

    def fail_once(number: int) -> int:
        if number == RECORDS // 2 and not mark.exists():
            mark.touch()
            raise ValueError("once")
        return number

    env = environment(tmp_path / "checkpoints", parallelism=2, restarts=1)  # one failed checkpoint fails the job
    stream = tallied(generated(env, RECORDS, 1_000).map(fail_once).set_parallelism(1), KEYS)
    with engines(engine):
        collected = stream.execute_and_collect()
        found = list(collected)
    progress = collected.job_client.get_progress()
    assert progress.status is JobStatus.FINISHED and progress.restarts == 1 and mark.exists()
    assert progress.checkpoints_completed > 2
    assert progress.checkpoints_failed <= 1, "the failure aborts at most the one in flight"
    assert sorted(found) == sorted(expected_tally(RECORDS, KEYS))
