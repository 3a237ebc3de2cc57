"""Retention: a needed file is never deleted, an unneeded file is deleted with the next completion."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.checkpoint.checkpoint_directory import Listing
from ekorn.checkpoint.metadata import assemble
from ekorn.checkpoint.retention import CheckpointRetentionPolicy, Deletions, Retention
from tests.checkpoint.checkpoint_values import all_files, graph, metadata, opened, snapshots, vertex
from tests.examples_by_profile import examples

JOB_GRAPH = graph(vertex(0, "source", source=True), vertex(1, "count", parallelism=2))
NEVER, ON_FAILURE, ON_CANCELLATION = CheckpointRetentionPolicy


@pytest.mark.parametrize(
    ("policy", "kept"),
    [(NEVER, set()), (ON_FAILURE, {"FAILED"}), (ON_CANCELLATION, {"CANCELED", "FAILED", "SUSPENDED"})],
)
def test_policies_keep_checkpoints_after_these_ends_of_a_job(policy, kept):
    assert {end for end in ("FINISHED", "CANCELED", "FAILED", "SUSPENDED") if policy.keeps(end)} == kept


class Job:
    """A checkpoint directory with its retention, driven by hand."""

    def __init__(self, num_retained=1):
        self.directory = opened()
        self.retention = Retention(num_retained)

    def write(self, checkpoint_id, reuse=()):
        return metadata(JOB_GRAPH, self.directory.files, checkpoint_id, reuse=reuse)

    def complete(self, value, pending=frozenset(), newest_id=None):
        written = self.directory.complete(value)
        listing, newest_id = self.directory.listing(), newest_id or value.checkpoint_id
        deletions = self.retention.completed(written, pending=pending, listing=listing, newest_id=newest_id)
        for checkpoint_id in deletions.checkpoints:
            self.directory.discard(checkpoint_id)
        self.directory.delete_files(deletions.files)
        return deletions

    def state_files(self):
        return {
            p for p in all_files(self.directory.files) if not p.startswith("owner/") and not p.endswith("_metadata")
        }


def shared(value):
    return tuple(dict.fromkeys(f for f in value.files() if f.path.startswith("shared/")))


def test_only_the_newest_checkpoint_is_kept_by_default():
    job = Job()
    first, second = job.write(1), job.write(2)
    job.complete(first)
    deletions = job.complete(second)
    assert deletions.checkpoints == (1,)
    assert set(deletions.files) == {f.path for f in shared(first)}
    assert job.directory.completed_ids() == [2]
    assert job.state_files() == second.paths()


def test_as_many_as_asked_for_are_kept():
    job = Job(num_retained=3)
    for checkpoint_id in range(1, 6):
        job.complete(job.write(checkpoint_id))
    assert job.directory.completed_ids() == [3, 4, 5] == list(job.retention.retained_ids)


@pytest.mark.parametrize("wrong", [0, -3])
def test_less_than_one_means_one(wrong, caplog):
    job = Job(num_retained=wrong)
    job.complete(job.write(1))
    job.complete(job.write(2))
    assert job.directory.completed_ids() == [2]
    assert "retaining 1 checkpoint" in caplog.text


def test_a_shared_file_lives_while_a_retained_checkpoint_refers_to_it():
    job = Job()
    first = job.write(1)
    job.complete(first)
    base = shared(first)[0]
    for checkpoint_id in (2, 3):
        job.complete(job.write(checkpoint_id, reuse=(base,)))
        assert job.directory.files.exists(base.path)
    job.complete(job.write(4))
    assert not job.directory.files.exists(base.path)


def test_files_of_a_checkpoint_that_failed_go_with_the_next_completion():
    job = Job()
    job.complete(job.write(1))
    job.write(2)  # all state files are written, and the driver died before the metadata
    third = job.write(3)
    job.complete(third)
    assert job.state_files() == third.paths()
    assert job.directory.listing().checkpoints == (3,)


def test_files_of_a_checkpoint_under_way_are_left_alone():
    job = Job()
    first, second, third = job.write(1), job.write(2), job.write(3)
    job.complete(first, pending={2, 3})
    job.complete(second, pending={3})
    assert third.paths() <= job.state_files()
    job.complete(third)
    assert job.state_files() == third.paths()


def test_a_file_that_a_pending_checkpoint_may_refer_to_waits_for_it():
    job = Job()
    first = job.write(1)
    job.complete(first)
    base = shared(first)[0]
    second = job.write(2)  # compacted: refers to nothing older
    third = job.write(3, reuse=(base,))  # taken before 2 completed
    job.complete(second, pending={3})
    assert job.directory.files.exists(base.path)
    job.complete(third)
    assert job.directory.files.exists(base.path)
    job.complete(job.write(4))
    assert not job.directory.files.exists(base.path)


def test_a_file_that_waited_in_vain_goes_too():
    job = Job()
    first = job.write(1)
    job.complete(first)
    job.complete(job.write(2), pending={3})
    fourth = job.write(4)
    job.complete(fourth, pending={5})
    assert not job.state_files() & first.paths()


def test_what_is_not_ours_is_left_alone():
    retention = Retention(1)
    value = metadata(JOB_GRAPH, opened().files, 5)
    listing = Listing(checkpoints=(5, 9), shared=("shared/notes.txt", "shared/9-v0-s0-a1.0-00"))
    assert retention.completed(value, pending=frozenset(), listing=listing, newest_id=5) == Deletions()


def test_checkpoints_found_at_the_start_are_retained_until_newer_ones_replace_them():
    before = Job(num_retained=2)
    for checkpoint_id in (1, 2):
        before.complete(before.write(checkpoint_id))
    after = Job(num_retained=2)
    after.directory = before.directory
    after.retention.adopt([after.directory.load(2), after.directory.load(1)])
    assert after.retention.retained_ids == (1, 2)
    after.complete(after.write(3))
    assert after.directory.completed_ids() == [2, 3]


def test_a_forgotten_checkpoint_goes_with_the_next_completion():
    job = Job(num_retained=3)
    job.complete(job.write(1))
    job.complete(job.write(2))
    job.retention.forget(2)
    job.complete(job.write(3))
    assert job.directory.completed_ids() == [1, 3]


def test_a_thousand_checkpoints_of_which_every_fiftieth_failed_leave_no_file_behind():
    job = Job(num_retained=2)
    chance = random.Random(1)
    last = None
    retained = []
    for checkpoint_id in range(1, 1001):
        reuse = tuple(f for f in shared(last) if chance.random() < 0.5) if last else ()
        value = job.write(checkpoint_id, reuse=reuse)
        if checkpoint_id % 50 == 0:
            continue
        job.complete(value)
        last = value
        retained = [*retained, value][-2:]
        if checkpoint_id % 100 == 1 or checkpoint_id > 990:
            assert job.state_files() == retained[0].paths() | retained[-1].paths()
    # 1000 itself failed: one more completion clears it.
    value = job.write(1001)
    job.complete(value)
    assert job.state_files() == value.paths() | retained[-1].paths()


@st.composite
def histories(draw):
    """Draw the steps of a job: begin a checkpoint on files of the newest completed one, complete one, or fail one."""
    return draw(st.lists(st.tuples(st.sampled_from(["begin", "complete", "fail"]), st.integers(0, 7)), max_size=40))


@settings(max_examples=examples(100), deadline=None)
@given(histories(), st.integers(1, 3), st.integers(1, 3))
def test_what_is_left_is_what_brute_force_says_is_needed(steps, num_retained, concurrent):
    job_graph = graph(vertex(0, "count"))
    job = Job(num_retained)
    next_id, pending, completed = 1, {}, []
    for step, choice in steps:
        if step == "begin" and len(pending) < concurrent:
            base = shared(completed[-1]) if completed else ()
            reuse = tuple(f for i, f in enumerate(base) if choice >> (i % 3) & 1)
            answers = snapshots(job_graph, job.directory.files, next_id, reuse=reuse)
            pending[next_id] = assemble(job_graph, job_id="j", checkpoint_id=next_id, timestamp_ms=0, snapshots=answers)
            next_id += 1
        elif step == "fail" and pending:
            del pending[sorted(pending)[choice % len(pending)]]
        elif step == "complete" and pending:
            chosen = sorted(pending)[choice % len(pending)]
            value = pending.pop(chosen)
            for older in [p for p in pending if p < chosen]:
                del pending[older]
            job.complete(value, pending=frozenset(pending), newest_id=next_id - 1)
            completed.append(value)
            needed = frozenset().union(*(c.paths() for c in completed[-num_retained:]))
            under_way = frozenset().union(*(p.paths() for p in pending.values()))
            left = job.state_files()
            assert needed | under_way <= left
            if not pending:
                assert left == needed
                assert job.directory.completed_ids() == [c.checkpoint_id for c in completed[-num_retained:]]
