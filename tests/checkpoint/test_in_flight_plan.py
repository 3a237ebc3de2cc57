"""Which stored blobs a new subtask processes: its own, or its share after rescaling; and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ekorn.checkpoint.metadata import CheckpointMetadata, OperatorMetadata
from ekorn.checkpoint.metadata_file import decode_metadata, encode_metadata
from ekorn.checkpoint.restore_plan import plan_restore
from ekorn.errors import RestoreError
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph
from ekorn.graph.specs import Broadcast, Custom, Global, Hash, Partitioning, Rebalance, Shuffle
from ekorn.state.snapshots import InFlightFiles, OperatorSnapshot, Share, StateFile, StoredInput
from ekorn.storage.memory import MemoryFiles
from tests.checkpoint.checkpoint_values import graph, metadata, operator, vertex

SENT, COUNT = operator("sent"), operator("count")


def job(partitioning: Partitioning, parallelism: int, senders: int = 1) -> JobGraph:
    drawn = graph(
        vertex(0, "sent", source=True, parallelism=senders, max_parallelism=8),
        vertex(1, "count", parallelism=parallelism, max_parallelism=8),
    )
    return replace(drawn, exchanges=(replace(drawn.exchanges[0], partitioning=partitioning),))


def stored(parallelism: int, partitioning: Partitioning, source: str = SENT.id) -> CheckpointMetadata:
    """Return a checkpoint with a blob on its way to every subtask."""
    taken = metadata(job(partitioning, parallelism), MemoryFiles(), 7)

    def with_blobs(part: OperatorMetadata) -> OperatorMetadata:
        if part.operator_id != COUNT.id:
            return part
        subtasks = tuple(_with_blob(each, index, source) for index, each in enumerate(part.subtasks))
        return replace(part, subtasks=subtasks)

    return replace(taken, operators=tuple(map(with_blobs, taken.operators)))


def _with_blob(snapshot: OperatorSnapshot | None, index: int, source: str) -> OperatorSnapshot:
    assert snapshot is not None
    file = StateFile(size=1, crc32=0, path=f"chk-7/{index}")
    return replace(snapshot, in_flight=InFlightFiles((StoredInput(source),), (file,), 1))


def shares(plan_of: CheckpointMetadata, new: JobGraph) -> list[dict[int, Share]]:
    """Return, for each new subtask, its share in the blobs of each old one."""
    plan = plan_restore(new, plan_of, "dir")
    found = []
    for index in range(new.vertices[1].parallelism):
        parts = plan.subtasks[SubtaskId(1, index)].in_flight
        found.append({int((part.files[0].path or "")[-1]): part.inputs[0].share for part in parts})
    return found


HASH = Hash(None)  # type: ignore[arg-type]  # no key is asked for


@pytest.mark.parametrize("partitioning", [HASH, Rebalance(), Shuffle(), Global(), Custom(None, None)])  # type: ignore[arg-type]
def test_at_the_same_parallelism_each_subtask_gets_its_own_back(partitioning: Partitioning) -> None:
    found = shares(stored(3, partitioning), job(partitioning, 3))
    assert found == [{0: Share.ALL}, {1: Share.ALL}, {2: Share.ALL}]


def test_keyed_blobs_are_read_by_all_new_subtasks() -> None:
    assert shares(stored(2, HASH), job(HASH, 3)) == [{0: Share.OWN_KEYS, 1: Share.OWN_KEYS}] * 3


def test_other_blobs_move_as_a_whole() -> None:
    assert shares(stored(3, Rebalance()), job(Rebalance(), 2)) == [{0: Share.ALL, 2: Share.ALL}, {1: Share.ALL}]
    assert shares(stored(1, Shuffle()), job(Shuffle(), 3)) == [{0: Share.ALL}, {}, {}]
    assert shares(stored(2, Global()), job(Global(), 3)) == [{0: Share.ALL, 1: Share.ALL}, {}, {}]


@pytest.mark.parametrize("partitioning", [Custom(None, None), Broadcast()])  # type: ignore[arg-type]
def test_what_the_program_divided_is_not_rescaled(partitioning: Partitioning) -> None:
    with pytest.raises(RestoreError, match=r"records in flight to operator 'count'.*run it at 2"):
        plan_restore(job(partitioning, 3), stored(2, partitioning), "dir")


def test_watermarks_count_only_where_no_side_was_rescaled() -> None:
    taken = stored(2, HASH)

    def keeps(new: JobGraph) -> bool:
        return plan_restore(new, taken, "dir").subtasks[SubtaskId(1, 0)].in_flight[0].inputs[0].keeps_watermarks

    assert keeps(job(HASH, 2))
    assert not keeps(job(HASH, 2, senders=2))
    assert not keeps(job(HASH, 3))


def test_an_exchange_that_is_gone_is_named_and_may_be_dropped() -> None:
    taken = stored(2, HASH, source=operator("other").id)
    with pytest.raises(RestoreError, match=r"between which the job no longer has an exchange.*savepoint"):
        plan_restore(job(HASH, 2), taken, "dir")
    plan = plan_restore(job(HASH, 2), taken, "dir", allow_non_restored_state=True)
    assert plan.subtasks[SubtaskId(1, 0)].in_flight == ()


def test_an_operator_that_no_longer_begins_a_chain_is_named() -> None:
    chained = graph(vertex(0, "sent", "count", source=True, parallelism=2, max_parallelism=8))
    with pytest.raises(RestoreError, match=r"'count'.*no longer begins a chain.*parallelism 2.*start_new_chain"):
        plan_restore(chained, stored(2, HASH), "dir")
    assert plan_restore(chained, stored(2, HASH), "dir", allow_non_restored_state=True)


def test_the_program_may_ignore_what_is_in_flight() -> None:
    plans = [plan_restore(job(HASH, 2), stored(2, HASH), "dir", ignored_in_flight_id=number) for number in (7, 6)]
    assert [any(restore.in_flight for restore in plan.subtasks.values()) for plan in plans] == [False, True]


def test_only_a_checkpoint_with_blobs_in_flight_has_the_new_version() -> None:
    with_blobs, without = stored(2, HASH), metadata(job(HASH, 2), MemoryFiles(), 7)
    assert encode_metadata(with_blobs).startswith(b"EKORN-CHECKPOINT 2 ")
    assert encode_metadata(without).startswith(b"EKORN-CHECKPOINT 1 ")
    assert decode_metadata(encode_metadata(with_blobs), "x") == with_blobs
    assert {file.path for file in with_blobs.files()} >= {"chk-7/0", "chk-7/1"}
