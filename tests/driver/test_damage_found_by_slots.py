"""Damage that only a slot finds, because it happened after the driver had verified the checkpoint."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ekorn.datastream.functions import MapFunction
from ekorn.engine.protocol import Failure
from ekorn.errors import JobExecutionError, SlotLostError
from ekorn.testing.scripted import Crash, Script, ScriptedEngine, run_scripted, start_scripted
from tests.driver.savepoint_programs import EXPECTED, counting, environment, numbers


class AtRestart(MapFunction):
    """Does something when the job restarts: after the driver has verified its checkpoint, before `count` reads it."""

    opened = 0
    deed: Callable[[], None] = staticmethod(lambda: None)

    def open(self, runtime_context):
        AtRestart.opened += 1
        if AtRestart.opened == 2:
            AtRestart.deed()

    def map(self, value):
        return value


@pytest.fixture
def program(tmp_path):
    def draw(deed, retained=2):
        AtRestart.opened, AtRestart.deed = 0, staticmethod(deed)
        env = environment(tmp_path, restarts=2, num_retained=retained, data_inline_threshold=0)
        return counting(numbers(env).map(AtRestart()))

    return draw


def newest_state_files(directory: Path) -> list[Path]:
    """Return the state files that were written for the newest completed checkpoint."""
    files = [*directory.rglob("shared/*"), *directory.rglob("chk-*/*-v*")]
    newest = max(int(path.parent.name.removeprefix("chk-")) for path in directory.rglob("chk-*/_metadata"))
    return [path for path in files if path.name.startswith(f"{newest}-v")]


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [flip, Path.unlink], ids=["flipped", "gone"])
def test_the_job_goes_back_to_the_checkpoint_before(program, tmp_path, damage):
    def deed():
        for path in newest_state_files(tmp_path):
            damage(path)

    run = run_scripted(program(deed), Script(crashes=[Crash("in-epoch", 9)]))
    # What was committed with the damaged checkpoint is emitted again, as docs/reliability.md says.
    assert sorted(set(run.records)) == sorted(EXPECTED) and run.records[-6:] == EXPECTED[-6:]
    first, newest, older = run.engine.restored_ids
    assert first is None and older is not None and newest is not None and older < newest
    assert run.handle.progress().restarts == 2


def test_the_next_checkpoint_replaces_the_damaged_one_and_not_the_good_one_before_it(program, tmp_path):
    seen = []

    def deed():
        for path in newest_state_files(tmp_path):
            flip(path)

    def look(handle):
        seen.append({int(path.parent.name[4:]) for path in tmp_path.rglob("chk-*/_metadata")})

    script = Script(crashes=[Crash("in-epoch", 9)], deeds=dict.fromkeys(range(1, 20), look))
    run = run_scripted(program(deed), script)
    _, damaged, older = run.engine.restored_ids
    assert damaged is not None
    after = next(kept for kept in seen if max(kept, default=0) > damaged)
    assert len(after) == 2 and older in after and damaged not in after


def test_an_error_that_is_no_damage_costs_no_checkpoint(program, tmp_path):
    def deed():
        raise OSError("a storage that is away for a moment")

    run = run_scripted(program(deed), Script(crashes=[Crash("in-epoch", 9)]))
    assert run.records == EXPECTED
    first, newest, again = run.engine.restored_ids
    assert first is None and again == newest


def test_if_no_other_checkpoint_is_retained_the_job_fails_with_the_file(program, tmp_path):
    def deed():
        for path in newest_state_files(tmp_path):
            flip(path)

    run = start_scripted(program(deed, retained=1), Script(crashes=[Crash("in-epoch", 9)]))
    with pytest.raises(JobExecutionError, match=r"none of the checkpoints in .* can be read, and starting empty"):
        run.handle.wait(0)


def test_damage_that_one_slot_finds_counts_although_another_slot_has_failed_for_another_reason(
    program, tmp_path, monkeypatch
):
    deploy, damaged = ScriptedEngine.deploy, []

    def failing_twice(engine, deployment):
        failure = deploy(engine, deployment)
        if failure is None:
            return None
        for path in damaged:
            flip(path)  # the driver, which verifies the files itself before each attempt, finds nothing
        return Failure(SlotLostError(1, "it was killed"), 1, others=(failure,))

    def deed():
        damaged.extend(newest_state_files(tmp_path))
        for path in damaged:
            flip(path)

    monkeypatch.setattr(ScriptedEngine, "deploy", failing_twice)
    run = run_scripted(program(deed), Script(crashes=[Crash("in-epoch", 9)]))
    _, newest, older = run.engine.restored_ids
    assert older is not None and newest is not None and older < newest
