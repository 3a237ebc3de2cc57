"""Ends the driver of a job with the leader that started it.

A leader that is replaced ends its drivers. If it cannot, because it was killed or is stopped, its drivers see on the
storage of the cluster that another service leads, and end themselves. A driver that cannot ask for as long as the lease
ends too: another service may lead by then, and have started the job again. What a driver does before it notices is
harmless once the driver of the next leader has claimed the checkpoints of the job (`checkpoint/ownership.py`). Until
then, only the end of the job could do harm, and `note` guards against that.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
from collections.abc import Callable, Mapping
from typing import Any

from ekorn.checkpoint.driver_process import Driver
from ekorn.checkpoint.ownership import RENEWALS_PER_LEASE, Ownership
from ekorn.driver.job_outcome import JobOutcome
from ekorn.errors import Fenced
from ekorn.service.cluster.leadership import elapsed_s
from ekorn.service.cluster.shared_jobs import outcome_path
from ekorn.storage.file_store import FileStore, open_files

__all__ = ["LeaderWatch", "end_this_process"]

_log = logging.getLogger(__name__)


class LeaderWatch:
    """Watches the leader that started this driver, and ends the driver when another service leads.

    Args:
        found: The description of the leader, which the leader gave to the driver.
        end: Ends this process.
        store: The store of the cluster; None opens it.
    """

    def __init__(self, found: Mapping[str, Any], end: Callable[[str], None], store: FileStore | None = None) -> None:
        self._store = store or open_files(found["storage"])
        self._lease_s: float = found["lease_s"]
        self._run: str = found["run"]
        self._end = end
        leader = Driver("", 0, None, found["token"])
        lease_ms = int(self._lease_s * 1000)
        self._owned = Ownership(self._store, leader, found["term"], 0, lease_ms, follows_cancellation=False)
        self._closed = threading.Event()

    def start(self) -> None:
        """Check that the leader still leads, and end this process as soon as another service leads.

        Raises:
            Fenced: The leader is replaced already.
            OSError: The storage of the cluster does not answer.
        """
        self._owned.check()
        threading.Thread(target=self._watch, name="ekorn-leader-watch", daemon=True).start()

    def close(self) -> None:
        """Stop watching: the driver is about to end."""
        self._closed.set()

    def _watch(self) -> None:
        asked_s = elapsed_s()
        # The question runs on a thread of its own: a storage that hangs must not keep the driver from ending.
        while not self._closed.wait(self._lease_s / RENEWALS_PER_LEASE):
            answer = _Answer(self._owned)
            if not answer.done.wait(self._lease_s):
                self._end("the storage of the cluster has not answered for the time of a lease")
                return
            if answer.fenced:
                self._end("another service leads")
                return
            if answer.error is None:
                asked_s = elapsed_s()
            elif elapsed_s() - asked_s > self._lease_s:
                self._end(f"the storage of the cluster has not answered for the time of a lease: {answer.error}")
                return

    def note(self, outcome: JobOutcome) -> None:
        """Write the outcome of the job to the shared storage, *then* check that this driver's leader still leads.

        The next leader claims its term, *then* looks for outcomes. So either the next leader sees this outcome, or this
        driver sees the claim. In the second case the driver keeps the checkpoints, and the next leader continues the
        job from them.

        Raises:
            Fenced: Another service leads. It may not have seen the outcome.
            OSError: The storage does not answer.
        """
        body = {"status": outcome.status.name, "savepoint": outcome.savepoint}
        self._store.replace(outcome_path(outcome.job_id, self._run), json.dumps(body).encode())
        self._owned.check()


class _Answer:
    """Whether the leader still leads, asked on a thread of its own."""

    def __init__(self, owned: Ownership) -> None:
        self.done = threading.Event()
        self.fenced = False
        self.error: OSError | None = None
        threading.Thread(target=self._ask, args=(owned,), name="ekorn-leader-question", daemon=True).start()

    def _ask(self, owned: Ownership) -> None:
        try:
            owned.check()
        except Fenced:
            self.fenced = True
        except OSError as error:
            self.error = error
        self.done.set()


def end_this_process(why: str) -> None:
    """Kill this process, with its slots and its Java process if they are its own."""
    _log.error("this driver ends: %s", why)
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
