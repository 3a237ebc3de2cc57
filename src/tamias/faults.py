"""Named places in product code where a test can make the process die or an error appear. Free when off.

A test sets `TAMIAS_FAULT` in a process's environment to `<point>:<who>:<count>:<what>`: the count-th time that
`who` (a slot or subtask number, or `*`) comes by the point, the process is killed (`kill`), leaves without
clean-up (`exit`) or an OSError is raised (`error`). Several faults are separated by commas.
"""

from __future__ import annotations

import os
import signal
from collections import Counter

_passed: Counter[tuple[str, str]] = Counter()


def point(name: str, who: int | str = "*") -> None:
    """A place that a fault can be set at."""
    wanted = os.environ.get("TAMIAS_FAULT")
    if wanted:
        _check(wanted, name, str(who))


def _check(wanted: str, name: str, who: str) -> None:
    for fault in wanted.split(","):
        place, whom, count, what = fault.split(":")
        if place != name or whom not in ("*", who):
            continue
        _passed[fault, name] += 1
        if _passed[fault, name] == int(count):
            if what == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            elif what == "exit":
                os._exit(17)
            else:
                raise OSError(f"fault {fault!r} was set")
