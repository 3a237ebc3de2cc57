"""A job with a broken sink is cancelled, stopped or drained: it ends as asked, or gives the reason why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from ekorn.common.job_status import JobStatus
from ekorn.errors import EkornError
from ekorn.functions.sink_contract import TwoPhaseCommitSinkFunction
from ekorn.testing.local_run import on_local_engine
from tests.live_jobs import environment, expected_tally, generated, tallied, until

KEYS = 5


class Broken(TwoPhaseCommitSinkFunction):
    """Fails in one method as long as a file exists. Committing a transaction twice has no further effect."""

    committed: dict[str, list] = {}

    def __init__(self, where: str, switch: Path) -> None:
        self.where, self.switch = where, switch

    def _fail_in(self, where: str) -> None:
        if where == self.where and self.switch.exists():
            raise OSError(f"the sink is broken: {where}")

    def begin_transaction(self):
        return []

    def invoke(self, transaction, value, context):  # type: ignore[override]
        self._fail_in("invoke")
        transaction.append(value)

    def pre_commit(self, transaction):
        self._fail_in("pre_commit")

    def commit(self, transaction):
        self._fail_in("commit")
        Broken.committed.setdefault(repr(transaction), list(transaction))

    def abort(self, transaction):
        self._fail_in("abort")


def everything() -> list[tuple]:
    """Return all committed records, in the order of the numbers."""
    return sorted((record for records in Broken.committed.values() for record in records), key=lambda r: r[1])


def running(tmp_path: Path, where: str, restarts: int = 10_000):
    """Start a job under load, and break its sink."""
    Broken.committed = {}
    switch = tmp_path / "broken"
    env = environment(tmp_path / "checkpoints", restarts=restarts)
    env.set_default_savepoint_directory(str(tmp_path / "savepoints"))
    tallied(generated(env, None, per_second=5_000), KEYS).add_sink(Broken(where, switch)).name("broken sink")
    client = env.execute_async()
    until(lambda: client.get_progress().checkpoints_completed >= 2)
    switch.touch()
    if where != "abort":
        until(lambda: client.get_progress().restarts >= 1)
    return client, switch


@pytest.mark.parametrize("where", ["invoke", "pre_commit", "commit", "abort"])
def test_a_job_with_a_broken_sink_can_be_cancelled(where: str, tmp_path: Path) -> None:
    with on_local_engine():
        client, _ = running(tmp_path, where)
        client.cancel().result()
        restarts = client.get_progress().restarts
        until(lambda: client.get_job_status().result() is JobStatus.CANCELED)
    assert client.get_progress().restarts <= restarts + 1, "it is not tried again and again"


@pytest.mark.parametrize("drain", [False, True], ids=["stop", "drain"])
@pytest.mark.parametrize("where", ["invoke", "pre_commit", "commit"])
def test_a_job_with_a_broken_sink_is_stopped_once_it_works_or_says_why_not(
    where: str, drain: bool, tmp_path: Path
) -> None:
    """Whatever the request came to while the sink was broken, every record is committed once and in order."""
    with on_local_engine():
        client, switch = running(tmp_path, where)
        stopped = client.stop_with_savepoint(drain)
        restarts = client.get_progress().restarts
        until(lambda: stopped.done() or client.get_progress().restarts > restarts + 2)
        switch.unlink()
        if stopped.done() and stopped.exception() is not None:
            assert isinstance(stopped.exception(), EkornError) and str(stopped.exception())
            stopped = client.stop_with_savepoint(drain)  # it gave the reason; ask again
        path = stopped.result(60)
        until(lambda: client.get_job_status().result() is JobStatus.FINISHED)
    found = everything()
    assert found == expected_tally(len(found), KEYS)
    assert (Path(path.removeprefix("file://")) / "_metadata").is_file()
    if not drain:
        goes_on(tmp_path, path, len(found))


def goes_on(tmp_path: Path, path: str, before: int) -> None:
    """Start another job from the savepoint; check that it continues after the committed records."""
    env = environment(tmp_path / "more")
    env.set_restore_path(path)
    tallied(generated(env, None, per_second=5_000), KEYS).add_sink(Broken("never", tmp_path / "never"))
    with on_local_engine():
        client = env.execute_async()
        until(lambda: sum(map(len, list(Broken.committed.values()))) > before)
        client.cancel().result()
    found = everything()
    assert len(found) > before
    assert found == expected_tally(len(found), KEYS)


def test_without_restarts_a_request_to_stop_ends_with_the_reason(tmp_path: Path) -> None:
    Broken.committed = {}
    switch = tmp_path / "broken"
    env = environment(tmp_path / "checkpoints")
    stream = tallied(generated(env, None, per_second=5_000), KEYS)
    stream.add_sink(Broken("commit", switch)).name("broken sink")
    with on_local_engine():
        client = env.execute_async()
        until(lambda: client.get_progress().checkpoints_completed >= 2)
        switch.touch()
        stopped = client.stop_with_savepoint(False, str(tmp_path / "savepoints"))
        until(stopped.done)
        with pytest.raises(EkornError):
            stopped.result()
        with pytest.raises(EkornError, match="the sink is broken: commit"):
            client.get_job_execution_result().result()
    assert client.get_job_status().result() is JobStatus.FAILED
