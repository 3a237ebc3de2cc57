"""Sinks with one commit per checkpoint: a crash at any step loses nothing and commits nothing twice."""

import json
from itertools import takewhile
from pathlib import Path

import pytest

from ekorn import faults
from ekorn.common import Configuration, WatermarkStrategy
from ekorn.datastream import CheckpointingMode, StreamExecutionEnvironment
from ekorn.functions.sink_contract import GlobalCommitter, GloballyCommittedSink, SinkWriter
from ekorn.testing import on_local_engine
from ekorn.testing.scripted import Crash, DriverDied, Script, ScriptedSource, run_scripted, start_scripted
from tests.operators.committing import POINTS, continuing, environment, retaining, run_at_two_parallelisms

RECORDS = list(range(24))


class Table(GloballyCommittedSink):
    """A table in a folder: one file for each commit, which lists the committed records."""

    def __init__(self, folder):
        self.folder = str(folder)

    def create_writer(self, context, restored):
        return Writer()

    def create_global_committer(self):
        return Committer(self.folder)


class Writer(SinkWriter):
    def __init__(self):
        self.records = []

    def write(self, value, timestamp):
        self.records.append(value)

    def prepare_commit(self):
        prepared, self.records = self.records, []
        return [prepared] if prepared else []


class Committer(GlobalCommitter):
    def __init__(self, folder):
        self.folder = Path(folder)

    def commit(self, commit_id, committables):
        file = self.folder / f"{len(list(self.folder.iterdir())):04}-{commit_id.lineage}-{commit_id.number}"
        known = [path.name.split("-")[1:] for path in self.folder.iterdir()]
        if not any(lineage == commit_id.lineage and int(number) >= commit_id.number for lineage, number in known):
            file.write_text(json.dumps(committables))


def commits(folder):
    return [json.loads(file.read_text()) for file in sorted(Path(folder).iterdir())]


def committed(folder):
    return sorted(record for commit in commits(folder) for part in commit for record in part)


def draw(env, folder):
    source = env.from_source(ScriptedSource([RECORDS], [4]), WatermarkStrategy.no_watermarks(), "numbers")
    numbers = source.uid("numbers").set_parallelism(1).rebalance()
    return numbers.sink_to(Table(folder)).uid("table").name("table")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "table").mkdir()
    return tmp_path / "table"


def test_a_checkpoint_is_one_commit_of_all_subtasks(folder):
    env = environment(parallelism=2)
    draw(env, folder)
    run_scripted(env)
    assert committed(folder) == RECORDS
    assert [len(commit) for commit in commits(folder)] == [2] * 5, "each commit holds the parts of both subtasks"


class Rounds(Table):
    """Writers that tell how often they have prepared output, and whether their input has ended."""

    def create_writer(self, context, restored):
        return RoundWriter(context.subtask_index)


class RoundWriter(SinkWriter):
    def __init__(self, index):
        self.index, self.rounds, self.finished = index, 0, False

    def write(self, value, timestamp):
        pass

    def finish(self):
        self.finished = True

    def prepare_commit(self):
        self.rounds += 1
        return [(self.index, self.rounds, self.finished)]


@pytest.mark.parametrize("turns", range(8))
def test_a_mark_that_overtakes_tears_no_commit(folder, turns):
    env = environment(parallelism=3)
    env.get_checkpoint_config().enable_unaligned_checkpoints()
    source = env.from_source(ScriptedSource([RECORDS], [4]), WatermarkStrategy.no_watermarks(), "numbers")
    source.set_parallelism(1).rebalance().sink_to(Rounds(folder))
    run_scripted(env, Script(turns=turns))
    whole = list(takewhile(lambda commit: not any(finished for _, _, finished in commit), commits(folder)))
    assert whole, "checkpoints were taken before a writer had finished"
    assert [sorted(commit) for commit in whole] == [
        [[index, number, False] for index in range(3)] for number in range(1, len(whole) + 1)
    ], "the commit of a checkpoint holds what every writer has prepared for it, and nothing else"


@pytest.mark.parametrize("kill", [True, False], ids=["killed", "closed"])
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_crash_at_any_step_loses_nothing_and_commits_nothing_twice(folder, point, kill, parallelism):
    env = environment(parallelism)
    draw(env, folder)
    run_scripted(env, Script(crashes=[Crash(point, 1), Crash(point, 4)], kill=kill))
    assert committed(folder) == RECORDS


@pytest.mark.parametrize("fault", ["sink-commit", "sink-committed", "sink-recover"])
def test_a_failure_while_committing_is_made_good(folder, fault, monkeypatch):
    monkeypatch.setenv("EKORN_FAULT", f"{fault}:*:1:error")
    faults.reset_counts()
    env = environment(parallelism=2)
    draw(env, folder)
    run = run_scripted(env, Script(crashes=[Crash("after-notify", 2)]))
    assert run.handle.progress().restarts == 2
    assert committed(folder) == RECORDS


@pytest.mark.parametrize("point", ["before-notify", "after-notify"])
@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1)])
def test_a_job_continues_at_another_parallelism(folder, tmp_path, point, before, after):
    run_at_two_parallelisms(lambda env: draw(env, folder), tmp_path / "checkpoints", point, before, after)
    assert committed(folder) == RECORDS


def test_a_job_that_goes_back_commits_again_what_it_reads_again(folder, tmp_path):
    """Checkpoint ids are used again by a job that restores an older checkpoint, for other commits."""
    env = retaining(environment(parallelism=2), tmp_path / "checkpoints")
    env.configure(Configuration().set_string("execution.checkpointing.num-retained", "10"))
    draw(env, folder)
    with pytest.raises(DriverDied):
        start_scripted(env, Script(crashes=[Crash("after-notify", 4)], driver_dies=True))
    (oldest,) = tmp_path.glob("checkpoints/*/chk-1")
    again = continuing(environment(parallelism=2), oldest)
    draw(again, folder)
    run_scripted(again)
    assert sorted(set(committed(folder))) == RECORDS
    assert len(committed(folder)) == len(RECORDS) + 12, "checkpoints 2, 3 and 4 are in the table twice"


def test_commits_of_checkpoints_that_failed_wait_for_the_next(folder):
    env = environment(parallelism=2)
    env.get_checkpoint_config().set_tolerable_checkpoint_failure_number(10)
    draw(env, folder)
    run_scripted(env, Script(failed_snapshots=[1, 2]))
    assert committed(folder) == RECORDS


def test_without_checkpoints_there_is_one_commit_at_the_end(folder):
    env = StreamExecutionEnvironment.get_execution_environment(Configuration()).set_parallelism(2)
    draw(env, folder)
    with on_local_engine():
        env.execute()
    assert committed(folder) == RECORDS
    assert len(commits(folder)) == 1


def test_at_least_once_checkpoints_lose_nothing(folder):
    env = environment(parallelism=2, mode=CheckpointingMode.AT_LEAST_ONCE)
    draw(env, folder)
    run_scripted(env, Script(crashes=[Crash("after-epoch", 2)]))
    assert sorted(set(committed(folder))) == RECORDS
