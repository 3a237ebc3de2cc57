"""Claim modes: a checkpoint or savepoint that a job starts from is claimed, or left alone."""

from pathlib import Path
from typing import Any

import pytest

from ekorn.checkpoint.metadata_file import decode_metadata
from ekorn.checkpoint.restore_point import resolve
from ekorn.checkpoint.savepoint_files import dispose_savepoint
from ekorn.common import JobStatus
from ekorn.common.job_id import JobID
from ekorn.datastream import ExternalizedCheckpointRetention
from ekorn.errors import CheckpointError, RestoreError
from ekorn.testing.scripted import Crash, DriverDied, Script, run_scripted, start_scripted
from tests.driver.savepoint_programs import EXPECTED, Ask, counting, environment, numbers

RETAIN = ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION


def program(directory, retain=True, **keys):
    env = environment(directory, data_inline_threshold=0, **keys)
    if retain:
        env.get_checkpoint_config().set_externalized_checkpoint_retention(RETAIN)
    return counting(numbers(env))


@pytest.fixture
def savepoint(tmp_path):
    """Return a savepoint of a job that was stopped after nine records."""
    ask = Ask(tmp_path / "savepoints", then="stop")
    run_scripted(program(tmp_path / "before"), Script(deeds={3: ask}))
    return Path(ask.path)


@pytest.fixture
def checkpoint(tmp_path):
    """Return a retained checkpoint of a cancelled job."""
    run = start_scripted(program(tmp_path / "before"), Script(deeds={4: lambda handle: handle.cancel()}))
    assert run.status is JobStatus.CANCELED
    return Path(str(run.handle.progress().last_checkpoint_path))


def files_of(directory):
    return sorted(p.name for p in directory.rglob("*")) if directory.exists() else None


@pytest.mark.parametrize("mode", ["NO_CLAIM", "LEGACY"])
def test_without_a_claim_a_savepoint_is_never_touched_and_serves_many_jobs(tmp_path, savepoint, mode):
    before = files_of(savepoint)
    for number in range(2):
        run = run_scripted(program(tmp_path / f"job {number}"), restore_path=str(savepoint), claim_mode=mode)
        assert run.records == EXPECTED[9:]
    assert files_of(savepoint) == before


@pytest.mark.parametrize("mode", ["NO_CLAIM", "LEGACY"])
def test_without_a_claim_a_checkpoint_of_another_job_is_never_touched(tmp_path, checkpoint, mode):
    before = files_of(checkpoint.parent)
    for number in range(2):
        run = run_scripted(program(tmp_path / f"job {number}"), restore_path=str(checkpoint), claim_mode=mode)
        assert run.records == EXPECTED[-len(run.records) :]
    assert files_of(checkpoint.parent) == before


def test_the_first_checkpoint_of_its_own_refers_to_nothing_of_what_the_job_started_from(tmp_path, checkpoint):
    """The first checkpoint holds all state, including restored state that has not changed since."""
    directory = tmp_path / "new"
    stop = Script(deeds={3: lambda handle: handle.cancel()})
    run = start_scripted(program(directory), stop, restore_path=str(checkpoint))
    first = Path(str(run.handle.progress().last_checkpoint_path))
    metadata = resolve(str(first))[1]
    assert metadata.paths() and all((first.parent / path).is_file() for path in metadata.paths())
    old = decode_metadata((checkpoint / "_metadata").read_bytes(), "old")
    assert not metadata.paths() & old.paths()
    again = run_scripted(program(tmp_path / "newer"), restore_path=str(first))
    assert again.records == EXPECTED[-len(again.records) :]


@pytest.mark.parametrize("retained", [1, 2])
def test_a_claimed_savepoint_goes_when_the_job_has_enough_checkpoints_of_its_own(tmp_path, savepoint, retained):
    there = []
    script = Script(deeds={n: lambda handle: there.append(savepoint.exists()) for n in range(1, 5)})
    job = program(tmp_path / "new", num_retained=retained)
    run = run_scripted(job, script, restore_path=str(savepoint), claim_mode="CLAIM")
    assert run.records == EXPECTED[9:]
    # The second epoch carries the first checkpoint, which is complete when the third epoch begins.
    assert there[: 1 + retained] == [True] * (1 + retained) and not savepoint.exists()


def test_a_claimed_checkpoint_goes_with_the_files_that_only_it_refers_to(tmp_path, checkpoint):
    paths = resolve(str(checkpoint))[1].paths()
    assert any(path.startswith("shared/") for path in paths)
    run_scripted(program(tmp_path / "new"), restore_path=str(checkpoint), claim_mode="CLAIM")
    assert not checkpoint.exists()
    assert not any((checkpoint.parent / path).exists() for path in paths)


def test_what_was_claimed_is_kept_with_the_checkpoints_of_a_job_that_keeps_them(tmp_path, savepoint):
    cancel = Script(deeds={1: lambda handle: handle.cancel()})
    run = start_scripted(program(tmp_path / "new"), cancel, restore_path=str(savepoint), claim_mode="CLAIM")
    assert run.status is JobStatus.CANCELED and savepoint.exists()
    job = program(tmp_path / "newer", retain=False)
    start_scripted(job, cancel, restore_path=str(savepoint), claim_mode="CLAIM")
    assert not savepoint.exists()


def test_what_was_claimed_is_gone_back_to_while_there_is_nothing_newer(tmp_path, savepoint):
    script = Script(checkpoints=[False], crashes=[Crash("after-epoch", 2)])
    job = program(tmp_path / "new", restarts=1)
    run = run_scripted(job, script, restore_path=str(savepoint), claim_mode="CLAIM")
    assert run.records == EXPECTED[9:] and run.engine.restored_ids[0] == run.engine.restored_ids[1]


def test_when_all_newer_ones_are_damaged_what_was_claimed_is_gone_back_to(tmp_path, savepoint, caplog):
    def damage(handle):
        newest = Path(handle.progress().last_checkpoint_path)
        (newest / "_metadata").write_bytes(b"rubbish")

    job = program(tmp_path / "new", restarts=1, num_retained=5)
    script = Script(checkpoints=[False, True] + [False] * 99, deeds={3: damage}, crashes=[Crash("after-epoch", 4)])
    run = run_scripted(job, script, restore_path=str(savepoint), claim_mode="CLAIM")
    assert sorted(set(run.records)) == sorted(EXPECTED[9:])
    assert run.engine.restored_ids[0] == run.engine.restored_ids[1]
    assert "starts from savepoint" in caplog.text and "again" in caplog.text


@pytest.mark.parametrize(("mode", "deleted"), [("CLAIM", True), ("NO_CLAIM", False)])
def test_the_next_driver_claims_again_what_the_last_one_could_not_delete(tmp_path, savepoint, mode, deleted):
    job_id = JobID.generate()
    start: dict[str, Any] = {"restore_path": str(savepoint), "claim_mode": mode, "job_id": job_id}
    dies = Script(crashes=[Crash("after-epoch", 3)], driver_dies=True)
    with pytest.raises(DriverDied):
        run_scripted(program(tmp_path / "job", num_retained=3), dies, **start)
    assert list((tmp_path / "job" / str(job_id)).glob("chk-*/_metadata")), "it has checkpoints of its own, too few"
    assert savepoint.exists()
    run_scripted(program(tmp_path / "job", num_retained=3), **start)
    assert savepoint.exists() is not deleted


def test_what_is_to_be_claimed_again_may_be_gone(tmp_path, savepoint):
    start: dict[str, Any] = {"restore_path": str(savepoint), "claim_mode": "CLAIM", "job_id": JobID.generate()}
    dies = Script(crashes=[Crash("after-epoch", 3)], driver_dies=True)
    with pytest.raises(DriverDied):
        run_scripted(program(tmp_path / "job", num_retained=3), dies, **start)
    dispose_savepoint(str(savepoint))
    assert run_scripted(program(tmp_path / "job", num_retained=3), **start).status is JobStatus.FINISHED


def test_a_claim_on_what_lies_in_the_job_s_own_directory_deletes_nothing_early(tmp_path):
    directory = tmp_path / "job"
    cancel = Script(deeds={4: lambda handle: handle.cancel()})
    first = start_scripted(program(directory), cancel)
    path = first.handle.progress().last_checkpoint_path
    again = run_scripted(program(directory), restore_path=path, claim_mode="CLAIM", job_id=first.settings.job_id)
    assert again.records == EXPECTED[-len(again.records) :]


def large_state(directory, **more):
    """Keeps a large state of which a checkpoint writes a small part and refers to the rest."""
    env = environment(directory, data_inline_threshold=0, **more)
    return counting(numbers(env, count=1040, runs=(1000, *(1,) * 60)), modulus=1000)


def test_a_checkpoint_of_a_job_that_runs_is_not_disposed_of_and_the_job_can_go_back_to_later_ones(tmp_path):
    refused = []

    def dispose(handle):
        with pytest.raises(CheckpointError, match="belongs to a job that is running") as error:
            dispose_savepoint(handle.progress().last_checkpoint_path)
        refused.append(error)

    script = Script(deeds={10: dispose}, crashes=[Crash("after-epoch", 13)])
    run = run_scripted(large_state(tmp_path, restarts=1), script)
    assert len(refused) == 1 and len(run.records) == 1040


def test_a_checkpoint_of_a_job_that_runs_may_be_started_from_but_not_claimed(tmp_path):
    runs = []

    def fork(handle):
        path = handle.progress().last_checkpoint_path
        with pytest.raises(RestoreError, match="use the claim mode NO_CLAIM"):
            run_scripted(large_state(tmp_path / "robber"), restore_path=path, claim_mode="CLAIM")
        runs.append(run_scripted(large_state(tmp_path / "fork"), restore_path=path))

    script = Script(deeds={10: fork}, crashes=[Crash("after-epoch", 13)])
    run = run_scripted(large_state(tmp_path, restarts=1), script)
    assert len(run.records) == 1040 and 0 < len(runs[0].records) < 1040
