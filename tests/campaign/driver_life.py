"""One life of a driver process, seen from outside: its reports, its end, its slots."""

from __future__ import annotations

import itertools
import json
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.campaign.driver import Run
from tests.campaign.zygote import Zygote
from tests.live_jobs import parent_of, process_state

PATIENCE_S = 90.0  # the limit for one life of a driver, which takes a small part of it
SPARK_PATIENCE_S = 180.0  # with Spark's own start


class CampaignFailed(AssertionError):
    """A guarantee was broken. The message has the logs, and the command to run the schedule again."""


class Driver:
    """One life of a driver process.

    Args:
        zygote: What it is forked from.
        run: What it runs.
        folder: Where its reports and its log go.
        environment: Its variables.
        watched_by: Called again and again while the driver is waited for.
    """

    def __init__(
        self,
        zygote: Zygote,
        run: Run,
        folder: Path,
        environment: dict[str, str],
        watched_by: Callable[[Driver], None] = lambda driver: None,
    ) -> None:
        number = next(_numbers)
        self._zygote = zygote
        self._output, self.log = folder / f"driver-{number}.out", folder / f"driver-{number}.log"
        self._output.touch()
        self.log.touch()
        self._read_to = 0
        self._watched_by = watched_by
        self.run = run
        self.patience_s = SPARK_PATIENCE_S if run.master else PATIENCE_S
        self.progress: dict[str, Any] = {}
        self.slots: set[int] = set()
        self.failed: str | None = None
        self._kinds: frozenset[str] = frozenset()  # the names of the classes of what it failed with
        self.done: dict[str, Any] | None = None
        self.pid = zygote.fork(run.text(), environment, self._output, self.log)

    def look(self) -> None:
        """Read what the driver has reported since the last call."""
        with self._output.open("rb") as file:
            file.seek(self._read_to)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._read_to += len(line)
                with suppress(ValueError):  # the job's own output
                    self._hear(json.loads(line))

    def _hear(self, news: Any) -> None:
        if not isinstance(news, dict):
            return
        self.progress = news.get("progress", self.progress)
        self.slots.update(self.progress.get("slots", ()))
        self.failed = news.get("failed", self.failed)
        self._kinds = frozenset(news.get("kinds", self._kinds))
        self.done = news.get("done", self.done)

    def failed_with(self, *kinds: type[BaseException]) -> bool:
        """Return whether the job failed with one of these errors, or because of one."""
        return any(kind.__name__ in self._kinds for kind in kinds)

    def ended(self, within_s: float = 0.0) -> bool:
        """Return whether the process has ended, after waiting for it a while."""
        code = self._zygote.how_it_ended(self.pid, within_s)
        self.look()
        return code is not None

    def until(self, condition: Callable[[Driver], bool]) -> bool:
        """Wait until the condition holds; return False if the driver ended before."""
        held = self.wait(condition, self.patience_s)
        if held is None:
            self._ask_where()
            raise CampaignFailed(f"driver {self.pid} made no progress: {self.progress}\n{self.tail(120)}")
        return held

    def wait(self, condition: Callable[[Driver], bool], within_s: float) -> bool | None:
        """Wait for a limited time; return True if the condition holds, False if the driver ended, None if neither.

        While the whole machine pauses, the driver can do nothing: at most a second counts between two looks.
        """
        left_s, looked = within_s, time.monotonic()
        while left_s > 0:
            if self.ended(0.01):
                return False
            if condition(self):
                return True
            self._watched_by(self)
            now = time.monotonic()
            left_s, looked = left_s - min(1.0, now - looked), now
        return None

    def until_first_checkpoint(self) -> None:
        """Wait until the driver has completed a checkpoint, has ended, or a fault has stopped it.

        A driver that is stopped completes no checkpoint, and may not have reported the one that it has completed.
        """
        self.until(lambda d: d.progress.get("checkpoints", 0) > 0 or d.is_stopped())

    def is_stopped(self) -> bool:
        """Return whether a fault or a signal has stopped the process."""
        return process_state(self.pid) == "T"

    def _ask_where(self) -> None:
        """Let the driver and its slots write the stacks of all their threads to the log."""
        self.kill(signal.SIGUSR1)
        self.ended(1.0)
        for pid in self.slot_processes():
            if parent_of(pid) == self.pid:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGABRT)  # writes its stacks, and dies
        self.ended(1.0)

    def kill(self, sign: int = signal.SIGKILL) -> None:
        if self._zygote.how_it_ended(self.pid) is not None:
            return  # the process id may belong to another process by now
        with suppress(ProcessLookupError):
            os.kill(self.pid, sign)
        if sign == signal.SIGKILL:
            self.ended(20.0)

    def is_slot(self, pid: int) -> bool:
        """Return whether a process is a slot of this campaign: ids are reused, and other jobs have slots too."""
        try:
            command, environment = (Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "environ"))
        except OSError:
            return False
        return b"slot_main" in command and str(self.log.parent).encode() in environment

    def slot_processes(self) -> list[int]:
        """Return all slot processes of this campaign."""
        return [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and self.is_slot(int(p.name))]

    def tail(self, lines: int = 40) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


_numbers = itertools.count(1)
