"""The outcome of a schedule, and a summary of many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.campaign.jobs import Verdict


@dataclass
class Outcome:
    """The outcome of one schedule."""

    seed: int
    ended: str = ""  # exact, repeated
    verdict: Verdict = field(default_factory=Verdict)
    lives: int = 0
    restarts: int = 0
    checkpoints: int = 0
    checkpoints_failed: int = 0
    acts: Counter[str] = field(default_factory=Counter)  # acts with an effect
    without_effect: Counter[str] = field(default_factory=Counter)  # acts that found the job ended, or nothing to act on
    armed: set[str] = field(default_factory=set)  # faults that were set
    faults: set[str] = field(default_factory=set)  # faults that happened
    damages: Counter[str] = field(default_factory=Counter)  # number of damaged files by kind of damage
    fallbacks: int = 0  # lives that started from an older checkpoint because the newest was damaged
    refusals: list[str] = field(default_factory=list)  # errors about damage that was then repaired
    seconds: float = 0.0


def summary(outcomes: Iterable[Outcome], *, failed: int, seconds: float) -> str:
    """Summarize outcomes as text for a terminal."""
    done = list(outcomes)
    ended = Counter(outcome.ended for outcome in done)
    faults = Counter(_point(fault) for outcome in done for fault in outcome.faults)
    armed = Counter(_point(fault) for outcome in done for fault in outcome.armed)
    acts, idle, damages = Counter[str](), Counter[str](), Counter[str]()
    for outcome in done:
        acts += outcome.acts
        idle += outcome.without_effect
        damages += outcome.damages
    idle_schedules = [o.seed for o in done if not (o.faults or o.acts or o.damages)]
    lines = [
        f"{len(done) + failed} schedules in {seconds:.0f} s: {failed} failed"
        + "".join(f", {count} {how}" for how, count in sorted(ended.items())),
        f"records lost {sum(o.verdict.lost for o in done)}, wrong {sum(o.verdict.wrong for o in done)}, doubled "
        f"{sum(o.verdict.doubled for o in done if o.ended == 'exact')}; written again behind a damaged checkpoint: "
        f"{sum(o.verdict.doubled for o in done if o.ended == 'repeated')} in {ended['repeated']} schedules",
        f"drivers started {sum(o.lives for o in done)}, restarts within them {sum(o.restarts for o in done)}, "
        f"checkpoints completed {sum(o.checkpoints for o in done)}, failed {sum(o.checkpoints_failed for o in done)}, "
        f"fallbacks to an older one {sum(o.fallbacks for o in done)}, refusals {sum(len(o.refusals) for o in done)}",
        f"acts with effect {acts.total()}, without {idle.total()}; faults armed {armed.total()}, "
        f"happened {faults.total()}; damaged files {damages.total()}; schedules in which nothing happened: "
        f"{len(idle_schedules)} {idle_schedules or ''}",
        "acts (with effect / all):",
        *_table({name: f"{acts[name]}/{acts[name] + idle[name]}" for name in sorted({*acts, *idle})}),
        "faults at points (happened / armed):",
        *_table({name: f"{faults[name]}/{count}" for name, count in sorted(armed.items())}),
        "damage:",
        *_table({name: str(count) for name, count in sorted(damages.items())}),
        "refusals, then repaired:",
        *_table({name: str(count) for name, count in Counter(_why(r) for o in done for r in o.refusals).items()}),
    ]
    return "\n".join(lines)


def _point(fault: str) -> str:
    """Return point and effect of a fault, without process and count."""
    where, _, _, what = fault.split(":")
    return f"{where} {what}"


def _why(refusal: str) -> str:
    """Return the part of a refusal that is the same in every run."""
    return refusal.partition("'")[0].strip()


def _table(rows: dict[str, str]) -> list[str]:
    cells = [f"{name} {value}" for name, value in rows.items()]
    width = max((len(cell) for cell in cells), default=0) + 3
    columns = max(1, 110 // width)
    return ["  " + "".join(c.ljust(width) for c in cells[i : i + columns]) for i in range(0, len(cells), columns)]
