"""Named points in product code at which a test makes the process die, stop, wait or fail. Free when off.

A test sets `EKORN_FAULT` in a process's environment to `<point>:<who>:<count>:<what>`. The fault happens when `who` (a
slot or subtask number, or `*` for any) passes the point for the count-th time in one process. What happens:

- `kill`: the process is killed, as by `kill -9`;
- `exit`: the process exits without clean-up;
- `stop`: the process is stopped, as by `kill -STOP`, until another process continues it;
- `sleep=<ms>`: the process waits;
- `error`: an `OSError` is raised; `full`: the `OSError` of a full disk.

Several faults are separated by commas. Child processes inherit the variable. With `EKORN_FAULT_DIR` set to a folder,
each fault happens in one of the processes only, and leaves a file with its name in the folder.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from collections import Counter

_passed: Counter[str] = Counter()


def point(name: str, who: int | str = "*") -> None:
    """Let a fault happen here, if a test has set one for this point."""
    wanted = os.environ.get("EKORN_FAULT")
    if wanted:
        _check(wanted, name, str(who))


def reset_counts() -> None:
    """Count from 1 again, for the next test in the same process."""
    _passed.clear()


def _check(wanted: str, name: str, who: str) -> None:
    for fault in wanted.split(","):
        place, whom, count, what = fault.split(":")
        if place != name or whom not in ("*", who):
            continue
        _passed[fault] += 1
        if _passed[fault] == int(count) and _is_first(fault):
            _happen(fault, what)


def _is_first(fault: str) -> bool:
    """Return whether this process is the first that the fault happens to."""
    folder = os.environ.get("EKORN_FAULT_DIR")
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
