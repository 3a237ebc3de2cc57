"""Queries of jobs in slot processes: during `kill -9` of a slot and after rescaling, answered right or refused."""

from __future__ import annotations

import os
import signal
from functools import partial
from typing import Any

import pytest

from ekorn.queryable import QueryableStateClient
from ekorn.testing.process_engine import on_process_engine
from tests.live_jobs import until
from tests.queryable.asked_jobs import KEYS, Asking, build

pytestmark = pytest.mark.long


def start(client: Any) -> tuple[QueryableStateClient, Asking]:
    """Start to ask a job that has been submitted."""
    at = client.get_queryable_state_address()
    asked = QueryableStateClient(at.host, at.port, at.token)
    asking = Asking(asked, client.get_job_id())
    asking.start()
    return asked, asking


def _restarted(client: Any, before: int) -> bool:
    return bool(client.get_progress().restarts > before)


def _answered(asking: Asking, before: int) -> bool:
    return asking.answers > before


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize("execution", ["epochs", "continuous"])
def test_queries_during_kills_and_after_rescaling_are_right_or_refused(backend, execution, tmp_path):
    keys = {"state__backend": backend, "ekorn__execution": execution}
    with on_process_engine(continuous=execution == "continuous"):
        client = build(10**9, 2_000, tmp_path, parallelism=2, **keys).execute_async()
        asked, asking = start(client)
        until(asking.all_known.is_set)
        covered = client.get_progress().checkpoints_completed + 2
        until(lambda: client.get_progress().checkpoints_completed >= covered)
        asking.must_be_known = True
        for kill in range(2):
            restarts, answers = client.get_progress().restarts, asking.answers
            os.kill(client.get_progress().slot_pids[kill], signal.SIGKILL)
            until(partial(_restarted, client, restarts))
            until(partial(_answered, asking, answers + 3))
        assert not asking.wrong
        path = client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result()
        asking.stop()
        asked.shutdown()
        assert not asking.wrong and asking.answers > 10

        again = build(10**9, 2_000, tmp_path, parallelism=3, restore=path, **keys).execute_async()
        asked, asking = start(again)
        asking.must_be_known = True
        until(lambda: asking.answers > 5)
        asking.stop()
        asked.shutdown()
        again.cancel().result()
        assert not asking.wrong and KEYS > 16, "the keys are in all key groups"
