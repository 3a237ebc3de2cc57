"""Named places in product code where a test can make the process die, stop, wait or fail. Free when off.

A test sets `TAMIAS_FAULT` in a process's environment to `<point>:<who>:<count>:<what>`: the count-th time that `who` (a
slot or subtask number, or `*`) comes by the point in one process,

- `kill`: the process is killed, as by `kill -9`;
- `exit`: it leaves without clean-up;
- `stop`: it is stopped, as by `kill -STOP`, until somebody continues it;
- `sleep=<ms>`: it waits;
- `error`: an `OSError` is raised, `full`: the one of a full disk.

Several faults are separated by commas. Processes inherit the variable; with `TAMIAS_FAULT_DIR` set to a folder, each
fault happens once among all of them, and leaves a file there that tells of it.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from collections import Counter

_passed: Counter[str] = Counter()


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
        _passed[fault] += 1
        if _passed[fault] == int(count) and _is_first(fault):
            _happen(fault, what)


def _is_first(fault: str) -> bool:
    """Whether this process is the one that the fault happens to."""
    folder = os.environ.get("TAMIAS_FAULT_DIR")
    if not folder:
        return True
    try:
        os.close(os.open(os.path.join(folder, fault), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return False
    return True


def _happen(fault: str, what: str) -> None:
    kind, _, number = what.partition("=")
    match kind:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "exit":
            os._exit(17)
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "sleep":
            time.sleep(int(number) / 1000)
        case "full":
            raise OSError(errno.ENOSPC, f"fault {fault!r} was set: {os.strerror(errno.ENOSPC)}")
        case _:
            raise OSError(f"fault {fault!r} was set")
