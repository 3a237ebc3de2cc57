"""Drivers after a cancelled job, and beside one that runs: what is continued, what is refused, what is warned of."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from ekorn.checkpoint.ownership import claim
from ekorn.common import JobStatus
from ekorn.errors import JobWasCancelled
from ekorn.storage.local import LocalFiles
from ekorn.testing.scripted import Crash, DriverDied, Script, run_scripted, start_scripted
from tests.checkpoint.checkpoint_values import driver
from tests.driver.savepoint_programs import EXPECTED, Ask, Ledger, counting, environment, numbers


def program(directory, sink, **more):
    env = environment(directory, externalized_checkpoint_retention="RETAIN_ON_CANCELLATION", **more)
    counting(numbers(env)).add_sink(sink).uid("ledger")
    return env


def cancelled(directory, sink, *, at_epoch=4):
    run = start_scripted(program(directory, sink), Script(deeds={at_epoch: lambda handle: handle.cancel()}))
    assert run.status is JobStatus.CANCELED
    return run


def test_a_driver_with_the_id_of_a_cancelled_job_is_refused(tmp_path):
    sink = Ledger("refused")
    first = cancelled(tmp_path, sink)
    committed = Ledger.committed("refused")
    assert 0 < len(committed) < len(EXPECTED)
    directory = tmp_path / str(first.settings.job_id)
    with pytest.raises(JobWasCancelled, match=r"was cancelled.*ekorn run -s PATH") as refused:
        run_scripted(program(tmp_path, sink), job_id=first.settings.job_id)
    assert (refused.value.job_id, refused.value.directory) == (str(first.settings.job_id), str(directory))
    assert Ledger.committed("refused") == committed
    with pytest.raises(JobWasCancelled):  # being refused changes nothing
        run_scripted(program(tmp_path, sink), job_id=first.settings.job_id)


def test_a_cancelled_job_is_continued_from_the_checkpoint_that_the_user_names(tmp_path):
    sink = Ledger("named")
    first = cancelled(tmp_path, sink)
    path = first.handle.progress().last_checkpoint_path
    run_scripted(program(tmp_path, sink), job_id=first.settings.job_id, restore_path=path)
    assert Ledger.committed("named") == EXPECTED


def test_a_cancelled_job_is_continued_from_an_older_checkpoint_if_the_user_names_that(tmp_path):
    def stream():
        keys = {"externalized_checkpoint_retention": "RETAIN_ON_CANCELLATION", "num_retained": 9}
        return counting(numbers(environment(tmp_path, **keys)))

    first = start_scripted(stream(), Script(deeds={4: lambda handle: handle.cancel()}))
    directory = tmp_path / str(first.settings.job_id)
    assert {"chk-1", "chk-2"} <= {path.name for path in directory.iterdir()}
    again = run_scripted(stream(), job_id=first.settings.job_id, restore_path=str(directory / "chk-1"))
    assert again.records == EXPECTED[6:]  # the second epoch carried the first checkpoint


def test_a_job_that_was_continued_on_purpose_is_continued_again_after_its_driver_has_died(tmp_path):
    sink = Ledger("died")
    first = cancelled(tmp_path, sink)
    settings = {"job_id": first.settings.job_id, "restore_path": first.handle.progress().last_checkpoint_path}
    with pytest.raises(DriverDied):
        run_scripted(program(tmp_path, sink), Script(crashes=[Crash("after-epoch", 2)], driver_dies=True), **settings)
    recorded = json.loads((tmp_path / str(first.settings.job_id) / "owner" / "start-000002").read_bytes())
    assert f"chk-{recorded['checkpoint_id']}" == Path(str(settings["restore_path"])).name, (
        "it is of the job's own history"
    )
    run_scripted(program(tmp_path, sink), job_id=first.settings.job_id)
    assert Ledger.committed("died") == EXPECTED


def test_a_cancelled_job_starts_from_the_savepoint_that_the_user_names_whatever_it_left(tmp_path):
    sink, ask = Ledger("saved"), Ask(tmp_path / "savepoints", then="cancel")
    first = start_scripted(program(tmp_path / "checkpoints", sink), Script(deeds={3: ask}))
    assert first.status is JobStatus.CANCELED
    with pytest.raises(JobWasCancelled):
        run_scripted(program(tmp_path / "checkpoints", sink), job_id=first.settings.job_id)
    run_scripted(program(tmp_path / "checkpoints", sink), job_id=first.settings.job_id, restore_path=ask.path)
    assert Ledger.committed("saved") == EXPECTED


def test_a_job_that_failed_is_continued_by_its_id(tmp_path):
    sink = Ledger("failed")
    first = start_scripted(program(tmp_path, sink), Script(crashes=[Crash("in-epoch", 4)]))
    assert first.status is JobStatus.FAILED
    run_scripted(program(tmp_path, sink), job_id=first.settings.job_id)
    assert Ledger.committed("failed") == EXPECTED


# ------------------------------------------------------------------------------- started from a path, beside a driver


def warnings_of(caplog) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING and "is not replaced" in r.message]


def test_starting_from_a_checkpoint_of_a_job_that_runs_warns_and_names_the_way_that_replaces_its_driver(
    tmp_path, caplog
):
    def fork(handle):
        path = handle.progress().last_checkpoint_path
        run_scripted(program(tmp_path / "fork", Ledger("fork")), restore_path=path)

    run = run_scripted(program(tmp_path, Ledger("running")), Script(deeds={4: fork}))
    (warning,) = warnings_of(caplog)
    job_id = run.settings.job_id
    assert f"the driver of job {job_id} runs" in warning
    assert f"$internal.pipeline.job-id: {job_id}" in warning and "take a savepoint" in warning


def test_starting_from_a_checkpoint_of_a_silent_driver_on_another_host_warns(tmp_path, caplog):
    first = cancelled(tmp_path, Ledger("silent"))
    files = LocalFiles(tmp_path / str(first.settings.job_id))
    claim(files, driver("silent", host="elsewhere"), 0, names_start=True)  # long ago
    path = first.handle.progress().last_checkpoint_path
    run_scripted(program(tmp_path / "other", Ledger("other")), restore_path=path)
    (warning,) = warnings_of(caplog)
    assert "may still run" in warning and "'elsewhere'" in warning


def test_starting_from_a_checkpoint_of_a_job_that_has_ended_warns_of_nothing(tmp_path, caplog):
    path = cancelled(tmp_path, Ledger("ended")).handle.progress().last_checkpoint_path
    run_scripted(program(tmp_path / "other", Ledger("after")), restore_path=path)
    assert warnings_of(caplog) == []
