"""The events of a slot on their way to the driver's loop: output waits for room, nothing else does."""

from __future__ import annotations

import queue
import threading

import pytest

from ekorn.engine.slots.event_queue import EventQueue
from ekorn.graph.addresses import SubtaskId
from ekorn.operators.epoch import OutputPart
from ekorn.operators.mark import MarkAck
from ekorn.slot.event_reports import Reports
from ekorn.slot_protocol.slot_events import EpochAcknowledged, OutputLeft, SubtaskFailed


def output(size_bytes: int) -> OutputLeft:
    return OutputLeft(0, OutputPart(0, 0, 1, ["x" * size_bytes], []))


ACK = EpochAcknowledged(0, MarkAck(0, 0, 0))
FAILED = SubtaskFailed(0, SubtaskId(0, 0), b"")


def test_reports_are_full_until_the_driver_has_taken_output() -> None:
    reports, woken = Reports(), []
    reports.on_room = lambda: woken.append(True)
    first, second = output(3 << 20), output(3 << 20)
    reports.put(first)
    assert not reports.is_full
    reports.put(ACK)
    reports.put(second)
    assert reports.is_full
    assert [reports.get(30.0) for _ in range(3)] == [first, ACK, second]
    assert reports.is_full, "what has been taken may still wait for the connection"
    reports.sent(first)
    reports.sent(ACK)
    assert not reports.is_full and woken == [True]
    reports.sent(second)
    assert woken == [True]
    with pytest.raises(queue.Empty):
        reports.get(0.0)


def test_output_waits_for_the_loop_and_other_events_do_not() -> None:
    events = EventQueue(output_bytes=100)
    events.put(output(150))
    waiting = threading.Thread(target=events.put, args=(output(10),), daemon=True)
    waiting.start()
    events.put(ACK)
    events.put(None)
    waiting.join(0.2)
    assert waiting.is_alive(), "the loop has not taken the first output"
    assert events.get(30.0) == output(150)
    waiting.join(30)
    assert not waiting.is_alive()
    assert [events.get(30.0) for _ in range(3)] == [ACK, None, output(10)]


def test_nobody_waits_for_a_loop_that_has_ended() -> None:
    events = EventQueue(output_bytes=100)
    events.put(output(150))
    waiting = threading.Thread(target=events.put, args=(output(10),), daemon=True)
    waiting.start()
    events.end()
    waiting.join(30)
    assert not waiting.is_alive()
