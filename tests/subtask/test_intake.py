"""Records enter the chain in runs, between which readers of state are let in."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ekorn.clock import ManualClock
from ekorn.subtask.exchange_writer import FULL_RUN
from ekorn.subtask.intake import Intake

RECORD_MS = 2


class SlowLoops:
    """A chain that takes its time for each record, and emits nothing."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.runs: list[int] = []

    def process(self, values: list[Any]) -> None:
        self.runs.append(len(values))
        self._clock.advance(RECORD_MS * len(values))


def intake(*, queried: bool) -> tuple[Intake, SlowLoops, list[int]]:
    """Return an intake, its chain, and a list that gets the number of runs at each pause."""
    clock = ManualClock(0)
    loops, pauses = SlowLoops(clock), list[int]()

    def give_way() -> bool:
        pauses.append(len(loops.runs))
        return queried

    outbox = SimpleNamespace(held_bytes=lambda: 0.0, blob_bytes=1 << 20, relieve=lambda: None)
    environment: Any = SimpleNamespace(clock=clock, give_way=give_way)
    chain: Any = (loops,)
    head: Any = None
    return Intake(head, chain, None, outbox, environment), loops, pauses  # type: ignore[arg-type]


def test_runs_grow_to_their_full_length_where_no_state_is_queried():
    taken, loops, _ = intake(queried=False)
    for _ in range(6):
        taken.process(list(range(FULL_RUN)), None)
    assert loops.runs[-1] == FULL_RUN


def test_where_state_is_queried_a_run_of_a_slow_chain_is_short():
    taken, loops, pauses = intake(queried=True)
    taken.process(list(range(200)), None)
    assert sum(loops.runs) == 200
    assert loops.runs[1:] == [1] * (len(loops.runs) - 1), "a record takes longer than queries are to wait"
    assert set(range(1, len(loops.runs) + 1)) <= set(pauses), "a pause after every run"


def test_a_short_run_is_followed_by_a_pause_too():
    taken, loops, pauses = intake(queried=False)
    for _ in range(6):
        taken.process(list(range(FULL_RUN)), None)
    before = len(loops.runs)
    taken.process([1, 2], None)
    assert loops.runs[before:] == [2] and pauses[-1] == before + 1
