"""The results of windows, computed the slow way: from the text of the reference, with none of the operators' code.

Everything is a plain value. An assigner, a trigger and an evictor are tuples such as ("tumbling", 10, 0),
("purging", ("count", 3)) and ("time", 5, False). A window is a pair of start and end, or "global". Keys are evaluated
one after another, since they share nothing but the watermark.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

MIN, MAX = -(2**63), 2**63 - 1

Window = Any
Record = tuple[Any, int]  # value, timestamp
CONTINUE, FIRE, PURGE, FIRE_AND_PURGE = "continue", "fire", "purge", "fire and purge"


@dataclass
class Outcome:
    """The firings, as (window, values), and the late values of one key, in order."""

    fired: list[tuple[Window, list[Any]]] = field(default_factory=list)
    late: list[Any] = field(default_factory=list)


def evaluate(
    events: list[tuple[Any, Any, int, int | None]],
    assigner: tuple[Any, ...],
    trigger: tuple[Any, ...],
    evictor: tuple[Any, ...] | None = None,
    lateness: int = 0,
) -> dict[Any, Outcome]:
    """Return the outcome of each key for events (key, value, timestamp, watermark that follows)."""
    keys: dict[Any, _Key] = {}
    watermark = MIN
    for key, value, timestamp, after in events:
        state = keys.setdefault(key, _Key(assigner, trigger, evictor, lateness))
        state.element(value, timestamp, watermark)
        if after is not None and after > watermark:
            watermark = after
            for other in keys.values():
                other.advance(watermark)
    for state in keys.values():
        state.advance(MAX)
    return {key: state.outcome for key, state in keys.items()}


def last_instant(window: Window) -> int:
    return MAX if window == "global" else window[1] - 1


def assigned(assigner: tuple[Any, ...], timestamp: int) -> list[Window]:
    kind = assigner[0]
    if kind == "tumbling":
        _, size, offset = assigner
        start = timestamp - ((timestamp - offset) % size)
        return [(start, start + size)]
    if kind == "sliding":
        _, size, slide, offset = assigner
        start = timestamp - ((timestamp - offset) % slide)
        found = []
        while start > timestamp - size:
            found.append((start, start + size))
            start -= slide
        return found
    if kind == "session":
        return [(timestamp, timestamp + assigner[1])]
    assert kind == "global"
    return ["global"]


class _Key:
    def __init__(self, assigner: Any, trigger: Any, evictor: Any, lateness: int) -> None:
        self.assigner, self.trigger, self.evictor, self.lateness = assigner, trigger, evictor, lateness
        self.event_time = assigner[0] != "global"
        self.contents: dict[Window, list[Record]] = {}
        self.sessions: list[Window] = []
        self.memory: dict[Window, dict[str, Any]] = {}  # the state of triggers
        self.timers: list[tuple[int, Window]] = []  # in order of registration
        self.watermark = MIN
        self.outcome = Outcome()

    # ---- one element (04, section 3)

    def element(self, value: Any, timestamp: int, watermark: int) -> None:
        self.watermark = watermark
        all_skipped = True
        for own in assigned(self.assigner, timestamp):
            window = self.merged_with_others(own) if self.assigner[0] == "session" else own
            if self.event_time and self.cleanup_time(window) <= watermark:
                if window in self.sessions:
                    self.sessions.remove(window)
                continue
            all_skipped = False
            self.contents.setdefault(window, []).append((value, timestamp))
            self.act(window, self.on_element(self.trigger, value, timestamp, window))
            if self.event_time and self.cleanup_time(window) != MAX:
                self.register(self.cleanup_time(window), window)
        if all_skipped and self.event_time and timestamp + self.lateness <= watermark:
            self.outcome.late.append(value)

    def cleanup_time(self, window: Window) -> int:
        return min(last_instant(window) + self.lateness, MAX)

    def act(self, window: Window, decision: str) -> None:
        if decision in (FIRE, FIRE_AND_PURGE) and self.contents.get(window):
            self.fire(window)
        if decision in (PURGE, FIRE_AND_PURGE):
            self.contents.pop(window, None)

    def fire(self, window: Window) -> None:
        kept = self.contents[window]
        if self.evictor is not None and not self.evictor[-1]:
            kept = self.evicted(kept)
        self.outcome.fired.append((window, [value for value, _ in kept]))
        if self.evictor is not None and self.evictor[-1]:
            kept = self.evicted(kept)
        self.contents[window] = list(kept)

    def evicted(self, records: list[Record]) -> list[Record]:
        kind, number, _ = self.evictor
        if kind == "count":
            return records[len(records) - number :] if len(records) > number else records
        if kind == "time":
            highest = max(t for _, t in records)
            return [(v, t) for v, t in records if not t <= highest - number]
        assert kind == "delta"
        last = records[-1][0]
        return [(v, t) for v, t in records if not delta(v, last) >= number]

    # ---- sessions (04, section 7)

    def merged_with_others(self, window: Window) -> Window:
        touching = sorted(s for s in self.sessions if s[0] <= window[1] and s[1] >= window[0])
        grown = True
        while grown:  # a grown window may touch more
            cover = (min([window[0], *(s[0] for s in touching)]), max([window[1], *(s[1] for s in touching)]))
            more = sorted(s for s in self.sessions if s[0] <= cover[1] and s[1] >= cover[0])
            grown, touching = more != touching, more
        if touching and touching != [cover]:
            self.on_merge(self.trigger, cover, touching)
            for old in touching:
                self.clear(self.trigger, old)
                self.delete(self.cleanup_time(old), old)
            joined = [record for old in touching for record in self.contents.pop(old, [])]
            if joined:
                self.contents[cover] = joined
        self.sessions = [s for s in self.sessions if s not in touching]
        self.sessions.append(cover)
        return cover

    # ---- time (06, section 3)

    def advance(self, watermark: int) -> None:
        self.watermark = watermark
        while True:
            due = [time for time, _ in self.timers if time <= watermark]
            if not due:
                return
            time, window = next(t for t in self.timers if t[0] == min(due))
            self.timers.remove((time, window))
            if self.assigner[0] == "session" and window not in self.sessions:
                continue
            self.act(window, self.on_event_time(self.trigger, time, window))
            if self.event_time and time == self.cleanup_time(window):
                self.contents.pop(window, None)
                self.clear(self.trigger, window)
                if window in self.sessions:
                    self.sessions.remove(window)

    def register(self, time: int, window: Window) -> None:
        if (time, window) not in self.timers:
            self.timers.append((time, window))

    def delete(self, time: int, window: Window) -> None:
        if (time, window) in self.timers:
            self.timers.remove((time, window))

    # ---- triggers (04, section 4)

    def on_element(self, trigger: Any, value: Any, timestamp: int, window: Window) -> str:
        kind, end = trigger[0], last_instant(window)
        memory = self.memory.setdefault(window, {})
        if kind == "purging":
            decision = self.on_element(trigger[1], value, timestamp, window)
            return FIRE_AND_PURGE if decision == FIRE else decision
        if kind == "count":
            memory["count"] = memory.get("count", 0) + 1
            if memory["count"] >= trigger[1]:
                memory["count"] = 0
                return FIRE
            return CONTINUE
        if kind == "delta":
            if "last" not in memory:
                memory["last"] = value
            elif delta(memory["last"], value) > trigger[1]:
                memory["last"] = value
                return FIRE
            return CONTINUE
        if kind in ("event", "continuous") and end <= self.watermark:
            return FIRE
        if kind in ("event", "continuous"):
            self.register(end, window)
        if kind == "continuous" and memory.get("next") is None:
            self.next_time(timestamp - timestamp % trigger[1] + trigger[1], window)
        return CONTINUE

    def next_time(self, time: int, window: Window) -> None:
        self.memory.setdefault(window, {})["next"] = min(time, last_instant(window))
        self.register(self.memory[window]["next"], window)

    def on_event_time(self, trigger: Any, time: int, window: Window) -> str:
        kind = trigger[0]
        if kind == "purging":
            decision = self.on_event_time(trigger[1], time, window)
            return FIRE_AND_PURGE if decision == FIRE else decision
        if kind in ("event", "continuous") and time == last_instant(window):
            return FIRE
        if kind == "continuous" and self.memory.get(window, {}).get("next") == time:
            self.next_time(time + trigger[1], window)
            return FIRE
        return CONTINUE

    def on_merge(self, trigger: Any, window: Window, old: list[Window]) -> None:
        kind = trigger[0]
        if kind == "purging":
            self.on_merge(trigger[1], window, old)
        memories = [self.memory.get(w, {}) for w in old]
        if kind == "count":
            self.memory.setdefault(window, {})["count"] = sum(m.get("count", 0) for m in memories)
        if kind == "event" and last_instant(window) > self.watermark:
            self.register(last_instant(window), window)
        pending = [m["next"] for m in memories if m.get("next") is not None]
        if kind == "continuous" and pending:
            self.memory.setdefault(window, {})["next"] = min(pending)
            self.register(min(pending), window)

    def clear(self, trigger: Any, window: Window) -> None:
        memory = self.memory.pop(window, {})
        if trigger[0] == "purging":
            trigger = trigger[1]
        if trigger[0] in ("event", "continuous"):
            self.delete(last_instant(window), window)
        if trigger[0] == "continuous" and memory.get("next") is not None:
            self.delete(memory["next"], window)


def delta(old: Any, new: Any) -> int:
    """Return the distance of two values of the form (key, number)."""
    return abs(new[1] - old[1])
