"""Sinks with transactions on the local engine: a crash at any step loses nothing and repeats nothing."""

import itertools
import logging
import os
from pathlib import Path

import pytest

from ekorn import faults
from ekorn.common import Configuration, Encoder, WatermarkStrategy
from ekorn.datastream import (
    CheckpointingMode,
    TwoPhaseCommitSinkFunction,
)
from ekorn.datastream.connectors.bucket_assigners import BucketAssigner
from ekorn.datastream.connectors.file_system import FileSink, RollingPolicy, StreamingFileSink
from ekorn.datastream.connectors.number_seq import NumberSequenceSource
from ekorn.errors import JobExecutionError
from ekorn.testing.scripted import Crash, DriverDied, Script, ScriptedSource, run_scripted, start_scripted
from tests.operators.committing import POINTS, environment, retaining

RECORDS = list(range(12))


def numbers(env, run=2):
    source = ScriptedSource([RECORDS], [run])
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")


class Folder(TwoPhaseCommitSinkFunction):
    """Transactions are files: written hidden, sealed, and made visible by a rename. Their names are plain data.

    What a failed attempt began after the checkpoint is in none; the user context says when to look for it.
    """

    commits_to_fail = 0
    clock = itertools.count()

    def __init__(self, path):
        self.path = path

    def begin_transaction(self):
        name = f"t{next(Folder.clock):04}"
        Path(self.path, name + ".open").touch()
        return name

    def invoke(self, transaction, value, context):  # type: ignore[override]
        with Path(self.path, transaction + ".open").open("a") as file:
            print(value, file=file)

    def pre_commit(self, transaction):
        os.rename(Path(self.path, transaction + ".open"), Path(self.path, transaction + ".sealed"))

    def commit(self, transaction):
        if type(self).commits_to_fail:
            type(self).commits_to_fail -= 1
            raise OSError("the folder is locked")
        if not Path(self.path, transaction).exists():
            os.rename(Path(self.path, transaction + ".sealed"), Path(self.path, transaction))

    def abort(self, transaction):
        for state in (".open", ".sealed"):
            Path(self.path, transaction + state).unlink(missing_ok=True)

    def initialize_user_context(self):
        self.clean()
        return "this sink's folder"

    def finish_recovering_context(self, handled_transactions):
        self.clean()

    def clean(self):
        """Abort what is not visible by now: it was begun after the checkpoint and will never be committed."""
        for file in Path(self.path).iterdir():
            if file.suffix:
                file.unlink()


def committed(path):
    files = sorted(file for file in Path(path).iterdir() if not file.suffix)
    return [int(line) for file in files for line in file.read_text().split()]


def left_over(path):
    return sorted(file.name for file in Path(path).iterdir() if file.suffix)


@pytest.fixture(autouse=True)
def commits_work():
    Folder.commits_to_fail = 0


# ----------------------------------------------------------------------------------------------------- crashes


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("kill", [True, False], ids=["killed", "closed"])
@pytest.mark.parametrize("point", POINTS)
def test_a_crash_at_any_step_loses_nothing_repeats_nothing_and_leaves_nothing_behind(tmp_path, point, kill, count):
    env = environment()
    numbers(env).add_sink(Folder(str(tmp_path)))
    run_scripted(env, Script(crashes=[Crash(point, count)], kill=kill))
    assert committed(tmp_path) == RECORDS
    assert left_over(tmp_path) == []


@pytest.mark.parametrize(
    ("fault", "count"),
    [("sink-commit", 1), ("sink-commit", 2), ("sink-committed", 1), ("sink-committed", 2), ("sink-recover", 1)],
)
def test_a_failure_in_the_middle_of_committing_is_made_good_after_the_restart(tmp_path, fault, count, monkeypatch):
    monkeypatch.setenv("EKORN_FAULT", f"{fault}:*:{count}:error")
    faults.reset_counts()
    env = environment()
    numbers(env).add_sink(Folder(str(tmp_path)))
    run = run_scripted(env, Script(crashes=[Crash("after-notify", 2)]))
    assert run.handle.progress().restarts == 2
    assert committed(tmp_path) == RECORDS
    assert left_over(tmp_path) == []


def test_a_commit_that_fails_is_tried_again_until_it_does_not(tmp_path):
    env = environment()
    numbers(env).add_sink(Folder(str(tmp_path)))
    Folder.commits_to_fail = 3
    run = run_scripted(env)
    assert run.handle.progress().restarts == 3
    assert committed(tmp_path) == RECORDS


def test_a_commit_that_never_works_fails_the_job_and_what_was_prepared_stays(tmp_path):
    env = environment(restarts=2)
    numbers(env).add_sink(Folder(str(tmp_path)))
    Folder.commits_to_fail = 10**6
    run = start_scripted(env)
    with pytest.raises(JobExecutionError, match="the folder is locked"):
        run.handle.wait(0)
    assert committed(tmp_path) == []
    assert any(name.endswith(".sealed") for name in left_over(tmp_path))


def test_transactions_of_lost_snapshots_wait_for_a_checkpoint_that_completes(tmp_path):
    env = environment()
    env.get_checkpoint_config().set_tolerable_checkpoint_failure_number(10)
    numbers(env).add_sink(Folder(str(tmp_path)))
    run_scripted(env, Script(failed_snapshots=[1, 2]))
    assert committed(tmp_path) == RECORDS
    assert left_over(tmp_path) == []


# ------------------------------------------------------------------------------------------------- what it is told

LOG = []


class Traced(TwoPhaseCommitSinkFunction):
    names = itertools.count(1)

    def begin_transaction(self):
        return f"t{next(Traced.names)}"

    def invoke(self, transaction, value, context):  # type: ignore[override]
        LOG.append(("write", transaction, value))

    def pre_commit(self, transaction):
        LOG.append(("prepare", transaction))

    def commit(self, transaction):
        LOG.append(("commit", transaction))

    def abort(self, transaction):
        LOG.append(("abort", transaction))

    def recover_and_commit(self, transaction):
        LOG.append(("recover and commit", transaction))

    def recover_and_abort(self, transaction):
        LOG.append(("recover and abort", transaction))

    def finish_processing(self, transaction):
        LOG.append(("last", transaction))

    def initialize_user_context(self):
        LOG.append(("new context",))
        return ["ids"]

    def finish_recovering_context(self, handled_transactions):
        LOG.append(("settled", self.get_user_context(), list(handled_transactions)))


@pytest.fixture
def log():
    LOG.clear()
    Traced.names = itertools.count(1)
    return LOG


def test_after_a_failure_what_a_checkpoint_holds_is_settled_before_anything_is_written(log):
    env = environment()
    numbers(env).add_sink(Traced())
    run_scripted(env, Script(crashes=[Crash("before-notify", 1)]))
    start = log.index(("recover and commit", "t1"))
    assert log[start : start + 3] == [
        ("recover and commit", "t1"),
        ("recover and abort", "t2"),
        ("settled", ["ids"], ["t1", "t2"]),
    ]
    assert log[:start].count(("new context",)) == 1 and ("new context",) not in log[start:]
    assert log[start + 3][0] == "write"


def test_the_end_of_the_input_is_said_with_the_transaction_that_is_open_and_no_other_is_begun(log):
    env = environment()
    numbers(env).add_sink(Traced())
    run_scripted(env)
    last = next(entry for entry in log if entry[0] == "last")
    after = log[log.index(last) + 1 :]
    assert after == [("prepare", last[1]), ("commit", last[1])]


def test_at_least_once_nothing_waits_for_a_checkpoint(log):
    env = environment(mode=CheckpointingMode.AT_LEAST_ONCE)
    numbers(env).add_sink(Traced())
    run_scripted(env, Script(checkpoints=[False]))
    commits = [entry for entry in log if entry[0] == "commit"]
    assert len(commits) >= len(RECORDS) // 2
    written = {entry[2]: entry[1] for entry in log if entry[0] == "write"}
    for value, transaction in written.items():
        prepared = log.index(("prepare", transaction))
        assert log.index(("write", transaction, value)) < prepared < log.index(("commit", transaction))


@pytest.mark.parametrize("point", POINTS)
def test_at_least_once_nothing_is_lost_and_nothing_committed_is_aborted(tmp_path, point):
    env = environment(mode=CheckpointingMode.AT_LEAST_ONCE)
    numbers(env).add_sink(Folder(str(tmp_path)))
    run_scripted(env, Script(checkpoints=[True, False], crashes=[Crash(point, 2)]))
    assert set(committed(tmp_path)) == set(RECORDS)


# -------------------------------------------------------------------------------------------------------- timeouts


class Late(Traced):
    def recover_and_commit(self, transaction):
        super().recover_and_commit(transaction)
        raise TimeoutError("the broker has forgotten it")


def test_a_transaction_that_timed_out_fails_the_job_unless_that_is_to_be_ignored(log, caplog):
    def draw(sink):
        env = environment(restarts=2)
        numbers(env).add_sink(sink)
        return env

    crashed = Script(crashes=[Crash("before-notify", 1)])
    run = start_scripted(draw(Late()), crashed)
    with pytest.raises(JobExecutionError, match="the broker has forgotten it"):
        run.handle.wait(0)
    run = start_scripted(
        draw(Late().set_transaction_timeout(10**9).ignore_failures_after_transaction_timeout()), crashed
    )
    with pytest.raises(JobExecutionError, match="the broker has forgotten it"):
        run.handle.wait(0)  # the transaction is not old enough
    with caplog.at_level(logging.ERROR):
        run_scripted(draw(Late().set_transaction_timeout(0).ignore_failures_after_transaction_timeout()), crashed)
    assert "what was written in it is lost" in caplog.text


def test_a_transaction_that_is_almost_too_old_is_warned_of(log, caplog):
    env = environment()
    numbers(env).add_sink(Traced().set_transaction_timeout(10).enable_transaction_timeout_warnings(0.5))
    with caplog.at_level(logging.WARNING):
        run_scripted(env)
    assert "its timeout is 10 ms" in caplog.text


def test_settings_that_mean_nothing_are_refused():
    for bad in (-1, 1.5, True):
        with pytest.raises((TypeError, ValueError), match="transaction timeout"):
            Traced().set_transaction_timeout(bad)  # type: ignore[arg-type]
    for bad in (-0.1, 1.1):
        with pytest.raises(ValueError, match="from 0 to 1"):
            Traced().enable_transaction_timeout_warnings(bad)


# ------------------------------------------------------------------------------------------------------ file sinks


class Parity(BucketAssigner):
    def get_bucket_id(self, element, context):
        return "even" if element % 2 == 0 else "odd"


def file_sink(path, policy, *, older=False):
    kind = StreamingFileSink if older else FileSink
    builder = kind.for_row_format(str(path), Encoder.simple_string_encoder())
    return builder.with_bucket_assigner(Parity()).with_rolling_policy(policy).build()


POLICIES = {
    "each checkpoint": RollingPolicy.on_checkpoint_rolling_policy(),
    "by size": RollingPolicy.default_rolling_policy(part_size=4, rollover_interval=10**9, inactivity_interval=10**9),
    "never": RollingPolicy.default_rolling_policy(part_size=10**9, rollover_interval=10**9, inactivity_interval=10**9),
}


def lines(path):
    found = {}
    for bucket in ("even", "odd"):
        files = [file for file in Path(path, bucket).iterdir() if not file.name.startswith(".")]
        found[bucket] = sorted(int(line) for file in files for line in file.read_text().split())
    return found


EXPECTED = {"even": RECORDS[::2], "odd": RECORDS[1::2]}


@pytest.mark.parametrize("older", [False, True], ids=["FileSink", "StreamingFileSink"])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.filterwarnings("ignore:StreamingFileSink")
def test_files_hold_every_record_once_whatever_crashes(tmp_path, point, policy, older):
    env = environment(parallelism=2)
    sink = file_sink(tmp_path, POLICIES[policy], older=older)
    stream = numbers(env).rebalance()
    if older:
        stream.add_sink(sink)
    else:
        stream.sink_to(sink)
    run_scripted(env, Script(crashes=[Crash(point, 2), Crash(point, 4)]))
    assert lines(tmp_path) == EXPECTED


@pytest.mark.parametrize("fault", ["sink-commit:*:1:error", "sink-committed:*:1:error", "sink-commit:1:2:error"])
def test_files_hold_every_record_once_when_committing_fails_halfway(tmp_path, fault, monkeypatch):
    monkeypatch.setenv("EKORN_FAULT", fault)
    faults.reset_counts()
    env = environment(parallelism=2)
    numbers(env).rebalance().sink_to(file_sink(tmp_path, POLICIES["each checkpoint"]))
    run = run_scripted(env)
    assert run.handle.progress().restarts == 1
    assert lines(tmp_path) == EXPECTED


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("point", POINTS)
def test_at_least_once_files_lose_nothing(tmp_path, point, policy):
    env = environment(mode=CheckpointingMode.AT_LEAST_ONCE)
    numbers(env).sink_to(file_sink(tmp_path, POLICIES[policy]))
    run_scripted(env, Script(checkpoints=[True, False], crashes=[Crash(point, 2), Crash(point, 3)]))
    assert {bucket: sorted(set(found)) for bucket, found in lines(tmp_path).items()} == EXPECTED


def test_at_least_once_files_are_visible_before_their_checkpoint_is_complete(tmp_path):
    env = environment(mode=CheckpointingMode.AT_LEAST_ONCE)
    env.get_checkpoint_config().set_tolerable_checkpoint_failure_number(100)
    numbers(env).sink_to(file_sink(tmp_path, POLICIES["each checkpoint"]))
    run = run_scripted(env, Script(failed_snapshots=range(1, 6)))
    assert run.handle.progress().checkpoints_completed < len(run.epochs)
    assert lines(tmp_path) == EXPECTED


def test_a_checkpoint_of_a_sequence_and_a_transaction_names_no_class_of_ekorn(tmp_path):
    env = environment(restarts=0)
    retaining(env, tmp_path / "checkpoints")
    env.configure(Configuration().set_string("execution.checkpointing.data-inline-threshold", "0"))
    source = env.from_source(NumberSequenceSource(1, 9), WatermarkStrategy.no_watermarks(), "numbers")
    (tmp_path / "out").mkdir()
    source.add_sink(Folder(str(tmp_path / "out")))
    with pytest.raises(DriverDied):
        start_scripted(env, Script(crashes=[Crash("before-notify", 1)], driver_dies=True))
    written = b"".join(path.read_bytes() for path in tmp_path.glob("checkpoints/*/chk-1/*-v*"))
    assert b"this sink's folder" in written, "the state of the sink is in a file"
    assert b"ekorn." not in written
