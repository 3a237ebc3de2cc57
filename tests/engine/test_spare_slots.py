"""Slots that wait for a rescale: which are missing, and that a job which has ended needs none."""

from __future__ import annotations

from ekorn.engine.slots.slot_pool import SpareSlots


def test_slots_beyond_those_in_use_are_missing() -> None:
    assert SpareSlots().missing(in_use=2, count=4) == [2, 3]
    assert SpareSlots().missing(in_use=4, count=2) == []


def test_a_job_that_has_ended_misses_no_slots() -> None:
    """The thread that releases what was made ready for a rescale may come after the end of the job."""
    spare = SpareSlots()
    spare.end()
    assert spare.missing(in_use=0, count=2) == []
