"""Exceptions of the user's `snapshot_state`: the checkpoint is declined and counts as failed, and the job goes on."""

from __future__ import annotations

import pytest

from ekorn.common import JobStatus
from ekorn.datastream import CheckpointedFunction, MapFunction
from ekorn.errors import JobExecutionError
from ekorn.testing.scripted import Crash, Script, run_scripted, start_scripted
from tests.driver.savepoint_programs import EXPECTED, Ask, Ledger, counting, environment, numbers

FAILING: set[int] = set()  # the checkpoints whose snapshots are declined
TAKEN: list[int] = []  # the checkpoints whose snapshots were taken


class Declines(MapFunction, CheckpointedFunction):
    """Passes records on; its `snapshot_state` raises an exception in some checkpoints."""

    def map(self, value):
        return value

    def initialize_state(self, context):
        pass

    def snapshot_state(self, context):
        if context.get_checkpoint_id() in FAILING:
            raise ValueError(f"no snapshot {context.get_checkpoint_id()}")
        TAKEN.append(context.get_checkpoint_id())


class Refusing(Ledger):
    """A transactional sink that cannot prepare its output once."""

    left = 0

    def pre_commit(self, transaction):
        if Refusing.left and transaction:
            Refusing.left -= 1
            raise OSError("the external system does not answer")


@pytest.fixture(autouse=True)
def _forget():
    FAILING.clear()
    TAKEN.clear()


def before_the_count(env, sink):
    counting(numbers(env).map(Declines()).name("declines")).add_sink(sink).uid("ledger")


def between_count_and_sink(env, sink):
    counting(numbers(env)).map(Declines()).name("declines").add_sink(sink).uid("ledger")


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize("draw", [before_the_count, between_count_and_sink])
@pytest.mark.parametrize("failing", [{1}, {2, 3}, {1, 2, 4}])
def test_tolerated_exceptions_cost_checkpoints_and_nothing_else(tmp_path, draw, failing, backend):
    FAILING.update(failing)
    env = environment(tmp_path, restarts=1, tolerable_failed_checkpoints=2)
    draw(env, Ledger("tolerated"))
    run = run_scripted(env, Script(crashes=[Crash("before-epoch", 6)]), state_backend=backend)
    progress = run.handle.progress()
    assert progress.checkpoints_failed == len(failing) + 1  # and that of the epoch that crashed
    assert progress.restarts == 1  # after the crash: what was declined is not missing in the checkpoints after it
    assert not failing & set(TAKEN)
    assert sorted(Ledger.committed("tolerated")) == sorted(EXPECTED)


def test_the_exception_ends_an_attempt_if_no_failure_is_tolerated(tmp_path):
    FAILING.add(2)
    env = environment(tmp_path, restarts=1)
    before_the_count(env, Ledger("restarted"))
    run = run_scripted(env)
    progress = run.handle.progress()
    assert (progress.restarts, progress.checkpoints_failed) == (1, 1)
    assert progress.last_failure == "ValueError: no snapshot 2 in operator 'declines' (subtask 0)"
    assert Ledger.committed("restarted") == EXPECTED


def test_the_error_of_a_job_that_tolerates_nothing_names_the_operator_and_has_the_traceback(tmp_path):
    FAILING.add(1)
    env = environment(tmp_path)
    before_the_count(env, Ledger("failed"))
    run = start_scripted(env)
    with pytest.raises(JobExecutionError, match="ValueError: no snapshot 1") as failed:
        run.handle.wait(0)
    assert failed.value.operator_name == "declines"
    assert "in snapshot_state" in str(failed.value.user_traceback)


def test_the_error_of_a_job_that_tolerated_enough_names_number_operator_and_exception(tmp_path):
    FAILING.update({1, 2})
    env = environment(tmp_path, tolerable_failed_checkpoints=1)
    before_the_count(env, Ledger("enough"))
    run = start_scripted(env)
    assert run.status is JobStatus.FAILED
    with pytest.raises(
        JobExecutionError, match=r"tolerable checkpoint failures: 1.*ValueError: no snapshot 2 in operator 'declines'"
    ):
        run.handle.wait(0)


def test_a_savepoint_that_is_declined_fails_and_the_job_goes_on(tmp_path):
    env = environment(tmp_path)
    before_the_count(env, Ledger("saved"))
    ask = Ask(tmp_path / "savepoints")

    def declined(handle):
        FAILING.update(range(1, 100))
        ask(handle)

    def again(handle):
        FAILING.clear()

    run = run_scripted(env, Script(checkpoints=[False] * 20, deeds={2: declined, 4: again}))
    assert run.status is JobStatus.FINISHED
    assert "ValueError: no snapshot" in ask.error
    assert Ledger.committed("saved") == EXPECTED


def test_a_sink_that_cannot_prepare_its_output_fails_the_attempt_whatever_is_tolerated(tmp_path):
    """What the sink wrote may be lost, and only the input has it: nothing may be committed without it."""
    Refusing.left = 1
    env = environment(tmp_path, restarts=1, tolerable_failed_checkpoints=5)
    counting(numbers(env)).add_sink(Refusing("refusing")).uid("ledger")
    run = run_scripted(env)
    assert run.handle.progress().restarts == 1
    assert "the external system does not answer" in str(run.handle.progress().last_failure)
    assert Ledger.committed("refusing") == EXPECTED
