"""What subtasks that run continuously have reported: acknowledgements, output, failures."""

from __future__ import annotations

import pickle

from ekorn.engine.slots.running_subtasks import RunningSubtasks
from ekorn.graph.addresses import SubtaskId
from ekorn.operators.epoch import OutputPart
from ekorn.operators.mark import MarkAck
from ekorn.slot_protocol.slot_events import EpochAcknowledged, OutputLeft, SubtaskFailed

ONE, OTHER = SubtaskId(0, 0), SubtaskId(1, 0)


def running(*subtasks: SubtaskId, attempt: int = 1) -> RunningSubtasks:
    made = RunningSubtasks()
    made.start(subtasks, attempt)
    return made


def part(of: SubtaskId, line: str) -> OutputPart:
    return OutputPart(of.vertex, of.subtask, number=0, lines=[line], collected=[])


def test_an_epoch_is_complete_when_every_subtask_that_runs_has_acknowledged_it() -> None:
    made = running(ONE, OTHER)
    made.take(EpochAcknowledged(1, MarkAck(0, 0, epoch=3)))
    assert not made.have_acknowledged(3)
    made.set_aside({OTHER})
    assert made.have_acknowledged(3)


def test_output_that_left_ahead_comes_with_the_acknowledgement() -> None:
    made = running(ONE)
    made.take(OutputLeft(1, part(ONE, "first")))
    assert made.output_bytes == 5
    made.take(EpochAcknowledged(1, MarkAck(0, 0, epoch=3, lines=["second"])))
    made.take(OutputLeft(1, part(ONE, "of the next epoch")))
    (ack,) = made.take_acks(3)
    assert ack.lines == ["first", "second"]
    assert made.output_bytes == len("of the next epoch"), "it waits for the end of its own epoch"


def test_what_an_attempt_that_is_over_reports_does_not_count() -> None:
    made = running(ONE, attempt=2)
    made.take(SubtaskFailed(1, ONE, pickle.dumps(ValueError("late"))))
    made.take(OutputLeft(1, part(ONE, "late")))
    made.take(EpochAcknowledged(1, MarkAck(0, 0, epoch=3)))
    assert made.failures.failure is None
    assert made.output_bytes == 0
    assert not made.have_acknowledged(3)


def test_subtasks_that_are_set_aside_lose_their_output_and_the_others_keep_theirs() -> None:
    made = running(ONE, OTHER)
    for subtask in (ONE, OTHER):
        made.take(OutputLeft(1, part(subtask, f"{subtask.vertex}")))
    assert made.set_aside({OTHER, SubtaskId(7, 0)}) == {OTHER}
    made.start({OTHER}, 2)
    for attempt, subtask in ((1, ONE), (2, OTHER)):
        made.take(EpochAcknowledged(attempt, MarkAck(subtask.vertex, subtask.subtask, epoch=4)))
    assert [ack.lines for ack in made.take_acks(4)] == [["0"], []]


def test_an_error_that_cannot_be_read_is_the_failure_of_its_subtask() -> None:
    made = running(ONE, OTHER)
    made.take(SubtaskFailed(1, ONE, b"no pickle"))
    failure = made.failures.failure
    assert failure is not None and failure.subtasks == {ONE}
    assert "its error cannot be read in the driver" in str(failure.error)
