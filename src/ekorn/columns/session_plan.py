"""Which session each row of a batch belongs to, for all rows at once.

Rows and open sessions of a key are in one component if they touch each other, in any order. In most components each
row touches the session as it is when the row arrives, so there is one session all along, and vectors tell how far it
reaches with each row. The rows of the other components are taken one by one: sessions merge there, or rows are too late
for any session. Only spans are computed one by one, and not aggregates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ekorn.columns.key_words import Rows
from ekorn.columns.segments import stable_order

__all__ = ["Merge", "OpenSessions", "SessionPlan", "planned_sessions"]

_MOST = 1 << 62
NEW = -1
"""Stands for the number of a session that is new, before the plan gives it one."""

Spans = NDArray[np.int64]


@dataclass(frozen=True)
class OpenSessions:
    """Open sessions: of each the number, the number of its key, and its span."""

    numbers: Rows
    keys: Rows
    starts: Spans
    ends: Spans


@dataclass(frozen=True)
class Merge:
    """Sessions that become one before the rows of a round: `target` takes what `others` have, in their order."""

    round: int
    target: int
    others: Sequence[int]


@dataclass
class SessionPlan:
    """The sessions of the rows of a batch.

    Attributes:
        sessions: The number of each row's session; `NEW` for a row that is too late.
        starts: Where the session of each row starts, with that row.
        ends: Where it ends.
        rounds: The round in which each row is taken. The rounds end where sessions merge.
        merges: The merges, in the order of their rounds.
        new_keys: The keys of new sessions, which are numbered from the first free number on.
    """

    sessions: Rows
    starts: Spans
    ends: Spans
    rounds: Rows
    merges: list[Merge] = field(default_factory=list)
    new_keys: Rows = field(default_factory=lambda: np.zeros(0, np.int64))


def planned_sessions(  # noqa: PLR0917
    keys: Rows, times: Spans, gap_ms: int, there: OpenSessions, first_free: int, last_end_over: int | None
) -> SessionPlan:
    """Return the sessions of rows.

    Args:
        keys: The number of each row's key.
        times: The time of each row.
        gap_ms: The gap that ends a session.
        there: The open sessions of these keys.
        first_free: The number of the first new session.
        last_end_over: The last end of the sessions that take no more rows; None if there are none.
    """
    count, known = len(keys), len(there.keys)
    starts, ends = np.concatenate([there.starts, times]), np.concatenate([there.ends, times + gap_ms])
    component, components = _components(np.concatenate([there.keys, keys]), starts, ends, only_rows=not known)
    order = stable_order(component)  # component by component, open sessions first, and rows as they came
    firsts = np.flatnonzero(np.diff(component[order], prepend=-1))
    lowest = -_running_most(component[order], -starts[order])
    highest = _running_most(component[order], ends[order])
    inside = np.ones(len(order), dtype=np.bool_)
    inside[1:] = (starts[order][1:] <= highest[:-1]) & (ends[order][1:] >= lowest[:-1])
    inside[firsts] = True

    opened_before = np.bincount(component[:known], minlength=components)
    one_by_one = np.zeros(components, dtype=np.bool_)
    one_by_one[component[order[~inside]]] = True  # also where several sessions are open: they do not touch each other
    dropped = np.zeros(components, dtype=np.bool_)
    if last_end_over is not None and count:
        over = ends[known:] <= last_end_over
        rows_over = np.bincount(component[known:][over], minlength=components)
        rows_of = np.bincount(component[known:], minlength=components)
        dropped = (opened_before == 0) & (rows_over == rows_of)
        first_over = ends[order[firsts]] <= last_end_over
        one_by_one |= (opened_before == 0) & first_over
        one_by_one &= ~dropped

    session_of = np.full(components, NEW, dtype=np.int64)
    session_of[component[:known]] = there.numbers
    fresh = np.flatnonzero(~one_by_one & ~dropped & (opened_before == 0))
    session_of[fresh] = first_free + np.arange(len(fresh))
    key_of = np.empty(components, dtype=np.int64)
    key_of[component[known:]] = keys
    back = np.empty(len(order), dtype=np.int64)
    back[order] = np.arange(len(order))
    rows = back[known:]
    of_row = component[known:]
    plan = SessionPlan(
        session_of[of_row], lowest[rows], highest[rows], np.zeros(count, dtype=np.int64), new_keys=key_of[fresh]
    )
    if one_by_one.any():
        _plan_one_by_one(plan, one_by_one, component, keys, times, gap_ms, there, first_free, last_end_over)
    return plan


def _components(keys: Rows, starts: Spans, ends: Spans, *, only_rows: bool) -> tuple[Rows, int]:
    """Return the number of each span's component, and how many there are."""
    by_start = np.argsort(starts, kind="stable")
    order = by_start[stable_order(keys[by_start])]
    in_order = keys[order]
    reach = ends[order] if only_rows else _running_most(in_order, ends[order])  # spans of rows have one length
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = (in_order[1:] != in_order[:-1]) | (starts[order][1:] > reach[:-1])
    component = np.empty(len(order), dtype=np.int64)
    component[order] = np.cumsum(begins) - 1
    return component, int(np.count_nonzero(begins))


def _running_most(groups: Rows, values: Spans) -> Spans:
    """Return the largest value of each group so far. The groups ascend."""
    if not len(values):
        return values
    ranks = np.zeros(len(groups), dtype=np.int64)
    np.cumsum(groups[1:] != groups[:-1], out=ranks[1:])
    least, most = int(values.min()), int(values.max())
    if (most - least + 1) * (int(ranks[-1]) + 1) < _MOST:
        lifted = ranks * (most - least + 1)
        running: Spans = np.maximum.accumulate(values - least + lifted) - lifted + least
        return running
    by_value = np.argsort(values, kind="stable")  # times that are very far apart: their places stand for them
    place = np.empty(len(values), dtype=np.int64)
    place[by_value] = np.arange(len(values))
    lifted = ranks * len(values)
    found: Spans = values[by_value[np.maximum.accumulate(place + lifted) - lifted]]
    return found


def _plan_one_by_one(  # noqa: PLR0917
    plan: SessionPlan,
    chosen: NDArray[np.bool_],
    component: Rows,
    keys: Rows,
    times: Spans,
    gap_ms: int,
    there: OpenSessions,
    first_free: int,
    last_end_over: int | None,
) -> None:
    """Plan the rows of some components in the order in which they came."""
    known = len(there.keys)
    live: dict[int, list[_Session]] = {}
    for number in np.flatnonzero(chosen[component[:known]]).tolist():
        session = _Session(int(there.numbers[number]), int(there.starts[number]), int(there.ends[number]))
        live.setdefault(int(component[number]), []).append(session)
    new_keys = plan.new_keys.tolist()
    rows = np.flatnonzero(chosen[component[known:]])
    of_rows = zip(rows.tolist(), component[known:][rows].tolist(), times[rows].tolist(), strict=True)
    for row, group, time in of_rows:
        sessions, end = live.setdefault(group, []), time + gap_ms
        touched = [s for s in sessions if s.start <= end and time <= s.end]
        if touched:
            session = touched[0] if len(touched) == 1 else _merged(plan, sessions, touched)
            session.start, session.end = min(session.start, time), max(session.end, end)
        elif last_end_over is not None and end <= last_end_over:
            plan.sessions[row] = NEW
            continue
        else:
            session = _Session(first_free + len(new_keys), time, end)
            new_keys.append(int(keys[row]))
            sessions.append(session)
        plan.sessions[row], plan.rounds[row] = session.number, session.round
        plan.starts[row], plan.ends[row] = session.start, session.end
    plan.new_keys = np.array(new_keys, dtype=np.int64)
    plan.merges.sort(key=lambda merge: merge.round)


class _Session:
    __slots__ = ("end", "number", "round", "start")

    def __init__(self, number: int, start: int, end: int) -> None:
        self.number = number
        self.start = start
        self.end = end
        self.round = 0


def _merged(plan: SessionPlan, sessions: list[_Session], touched: list[_Session]) -> _Session:
    """Merge sessions into the earliest of them."""
    touched.sort(key=lambda s: (s.start, s.end))
    target, *others = touched
    target.round = 1 + max(s.round for s in touched)
    plan.merges.append(Merge(target.round, target.number, [s.number for s in others]))
    target.end = max(s.end for s in touched)
    for other in others:
        sessions.remove(other)
    return target
