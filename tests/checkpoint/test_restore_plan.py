"""Restore plans: operators are matched by id, state is redistributed over another parallelism, conflicts are named."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekorn.checkpoint.metadata import assemble
from ekorn.checkpoint.restore_plan import apply_max_parallelism, plan_restore
from ekorn.errors import RestoreError
from ekorn.graph.addresses import SubtaskId
from ekorn.keygroups import key_group_range
from ekorn.state.snapshots import SubtaskSnapshot
from ekorn.storage.memory import MemoryFiles
from tests.checkpoint.checkpoint_values import JOB, graph, metadata, operator, snapshots, vertex


def taken(job, **kwargs):
    return metadata(job, MemoryFiles(), 7, **kwargs)


def count(parallelism=1, max_parallelism=128, **kwargs):
    return vertex(0, "count", parallelism=parallelism, max_parallelism=max_parallelism, source=True, **kwargs)


def restored_count(subtask):
    part = subtask.of(operator("count").id)
    assert part is not None
    return part


# ------------------------------------------------------------------------------------------ matching


def test_an_unchanged_job_gets_each_subtask_its_own_back():
    job = graph(vertex(0, "source", source=True), vertex(1, "count", "sink", parallelism=2))
    stored = taken(job)
    plan = plan_restore(job, stored, "dir")
    assert (plan.directory, plan.checkpoint_id) == ("dir", 7)
    assert set(plan.subtasks) == {(0, 0), (1, 0), (1, 1)}
    for index in range(2):
        part = restored_count(plan.subtasks[SubtaskId(1, index)])
        own = stored.operator(operator("count").id).subtasks[index]
        assert part.keyed == (own.keyed,)
        assert part.states == own.states
        assert part.restored_checkpoint_id == 7
        assert part.max_parallelism == 128
        assert part.operator_state == tuple(s.operator_state for s in stored.operator(operator("count").id).subtasks)
    assert not any(s.finished for s in plan.subtasks.values())


def test_operators_are_found_by_id_wherever_they_run_now():
    stored = taken(graph(vertex(0, "source", "count", source=True)))
    job = graph(vertex(0, "source", source=True), vertex(1, "count"))
    plan = plan_restore(job, stored, "dir")
    assert plan.subtasks[SubtaskId(0, 0)].of(operator("source").id) is not None
    assert plan.subtasks[SubtaskId(1, 0)].of(operator("count").id) is not None
    assert plan.subtasks[SubtaskId(1, 0)].of(operator("source").id) is None


def test_a_new_operator_starts_empty():
    stored = taken(graph(vertex(0, "source", source=True)))
    plan = plan_restore(graph(vertex(0, "source", source=True), vertex(1, "new")), stored, "dir")
    assert plan.subtasks[SubtaskId(1, 0)].operators == ()


def test_state_that_nobody_takes_is_refused_with_its_name_and_what_to_do():
    stored = taken(graph(vertex(0, "source", "old", "older", source=True)))
    job = graph(vertex(0, "source", source=True))
    with pytest.raises(RestoreError) as caught:
        plan_restore(job, stored, "dir")
    for part in ("'old'", "'older'", operator("old").id, "uid", "ignore-unclaimed-state"):
        assert part in str(caught.value)
    plan = plan_restore(job, stored, "dir", allow_non_restored_state=True)
    assert len(plan.subtasks[SubtaskId(0, 0)].operators) == 1


def test_an_operator_that_is_gone_and_had_no_state_is_no_loss():
    with_map = graph(vertex(0, "source", "map", source=True))
    store = MemoryFiles()
    (answer,) = snapshots(with_map, store, 7)
    stateless = replace(answer.operators[1], keyed=None, operator_state=None)
    answer = replace(answer, operators=(answer.operators[0], stateless))
    stored = assemble(with_map, job_id=JOB, checkpoint_id=7, timestamp_ms=0, snapshots=[answer])
    plan_restore(graph(vertex(0, "source", source=True)), stored, "dir")


# ------------------------------------------------------------------------------------------ max parallelism


def test_the_stored_max_parallelism_is_taken_when_the_program_sets_none():
    stored = taken(graph(count(parallelism=2, max_parallelism=256)))
    job = apply_max_parallelism(graph(count(parallelism=3, max_parallelism=128)), stored)
    assert job.vertices[0].max_parallelism == 256
    assert job.vertices[0].parallelism == 3
    plan_restore(job, stored, "dir")


def test_another_explicit_max_parallelism_is_refused_with_both_values():
    stored = taken(graph(count(max_parallelism=256)))
    with pytest.raises(RestoreError, match=r"'count'.*max parallelism 128.*stored with 256"):
        apply_max_parallelism(graph(count(max_parallelism=128, explicit=True)), stored)
    apply_max_parallelism(graph(count(max_parallelism=256, explicit=True)), stored)


def test_a_parallelism_beyond_the_stored_maximum_is_refused_with_both_values():
    stored = taken(graph(count(max_parallelism=4)))
    with pytest.raises(RestoreError, match=r"parallelism 5.*max parallelism 4"):
        apply_max_parallelism(graph(count(parallelism=5)), stored)


def test_a_parallelism_of_exactly_the_stored_maximum_is_accepted():
    stored = taken(graph(count(max_parallelism=4)))
    job = apply_max_parallelism(graph(count(parallelism=4)), stored)
    assert len(plan_restore(job, stored, "/checkpoints").subtasks) == 4


def test_two_stored_maxima_in_one_chain_are_refused():
    stored = taken(graph(vertex(0, "a", max_parallelism=64, source=True), vertex(1, "b", max_parallelism=128)))
    with pytest.raises(RestoreError, match=r"64 and 128.*start_new_chain"):
        apply_max_parallelism(graph(vertex(0, "a", "b", source=True)), stored)


def test_a_vertex_without_stored_state_keeps_its_own_maximum():
    stored = taken(graph(count(max_parallelism=64)))
    job = apply_max_parallelism(graph(count(), vertex(1, "new", max_parallelism=512)), stored)
    assert [v.max_parallelism for v in job.vertices] == [64, 512]


def test_keyed_state_is_not_planned_for_another_maximum():
    stored = taken(graph(count(max_parallelism=64)))
    with pytest.raises(RestoreError, match=r"128.*64"):
        plan_restore(graph(count(max_parallelism=128)), stored, "dir")


# ------------------------------------------------------------------------------------------ rescaling


@given(st.integers(1, 40), st.integers(1, 40), st.integers(40, 130))
def test_every_key_group_reaches_its_new_subtask_from_exactly_one_old_one(before, after, maximum):
    stored = taken(graph(count(parallelism=before, max_parallelism=maximum)))
    job = graph(count(parallelism=after, max_parallelism=maximum))
    plan = plan_restore(job, stored, "dir")
    seen = []
    for index in range(after):
        first, last = key_group_range(maximum, after, index)
        part = restored_count(plan.subtasks[SubtaskId(0, index)])
        own = [g for k in part.keyed for g in range(max(first, k.key_group_first), min(last, k.key_group_last) + 1)]
        assert own == list(range(first, last + 1))
        assert all(k.key_group_first <= last and first <= k.key_group_last for k in part.keyed), "no file in vain"
        assert len(part.operator_state) == before
        seen += own
    assert seen == list(range(maximum))


# ------------------------------------------------------------------------------------------ finished


def stored_with_finished(job, *finished, absent=()):
    store = MemoryFiles()
    answers = [s for s in snapshots(job, store, 7, finished=finished) if (s.vertex, s.subtask) not in absent]
    return assemble(job, job_id=JOB, checkpoint_id=7, timestamp_ms=0, snapshots=answers, finished=absent)


def flags(plan, vertex_id, parallelism):
    return [plan.subtasks[SubtaskId(vertex_id, index)].finished for index in range(parallelism)]


def test_a_finished_subtask_stays_finished_at_the_same_parallelism():
    job = graph(count(parallelism=3))
    stored = stored_with_finished(job, (0, 1), absent=[(0, 2)])
    assert flags(plan_restore(job, stored, "dir"), 0, 3) == [False, True, True]


def test_a_fully_finished_operator_stays_finished_at_any_parallelism():
    stored = stored_with_finished(graph(count(parallelism=2)), (0, 0), (0, 1))
    assert flags(plan_restore(graph(count(parallelism=3)), stored, "dir"), 0, 3) == [True] * 3


def test_after_rescaling_a_half_finished_operator_everyone_runs_and_shares_what_is_stored():
    stored = stored_with_finished(graph(count(parallelism=2)), absent=[(0, 0)])
    plan = plan_restore(graph(count(parallelism=3)), stored, "dir")
    assert flags(plan, 0, 3) == [False] * 3
    part = restored_count(plan.subtasks[SubtaskId(0, 0)])
    assert part.operator_state[0] is None
    assert part.operator_state[1] is not None


def test_a_chain_with_a_new_operator_in_it_is_not_finished():
    stored = stored_with_finished(graph(count()), (0, 0))
    plan = plan_restore(graph(vertex(0, "count", "new", source=True)), stored, "dir")
    assert flags(plan, 0, 1) == [False]


def test_a_finished_operator_behind_one_that_runs_is_refused():
    job = graph(vertex(0, "source", source=True), vertex(1, "count"))
    stored = stored_with_finished(job, (1, 0))
    with pytest.raises(RestoreError, match=r"'count' as finished: 'source'"):
        plan_restore(job, stored, "dir")


def test_a_snapshot_without_operators_is_planned_for():
    job = graph(count())
    stored = assemble(job, job_id=JOB, checkpoint_id=7, timestamp_ms=0, snapshots=[SubtaskSnapshot(0, 0)])
    part = restored_count(plan_restore(job, stored, "dir").subtasks[SubtaskId(0, 0)])
    assert part.keyed == ()
    assert part.operator_state == (None,)
