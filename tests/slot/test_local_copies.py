"""Local recovery: a slot reads undamaged copies of its state files from its own disk instead of the checkpoint."""

import os
import queue
import random

import pytest

from tamias.clock import SystemClock
from tamias.config.checkpoint_settings import LocalCopySettings
from tamias.datastream import StreamExecutionEnvironment
from tamias.graph.addresses import SubtaskId
from tamias.operators.epoch import Ack, EpochOrder
from tamias.slot.deployment import Deployment
from tamias.slot.host import SlotHost
from tamias.slot.local_copies import LocalCopies
from tamias.state.snapshots import (
    KeyedFiles,
    OperatorRestore,
    OperatorSnapshot,
    RestorePlan,
    SubtaskRestore,
    SubtaskSnapshot,
)
from tamias.state.state_files import read_state, write_state
from tamias.storage.local import LocalFiles
from tamias.testing.drawn_job import drawn_job

JOB = "ab" * 16
BOTH = {"write": True, "read": True}


class Remote(LocalFiles):
    """The checkpoint directory, with a list of the files that were read from it."""

    def __init__(self, root):
        super().__init__(root)
        self.reads = []

    def read(self, path):
        self.reads.append(path)
        return super().read(path)


@pytest.fixture
def remote(tmp_path):
    return Remote(tmp_path / "remote")


def copies(tmp_path, slot=0, **settings):
    return LocalCopies(LocalCopySettings(directories=(str(tmp_path / "local"),), **{**BOTH, **settings}), JOB, slot)


def snapshot(*files):
    return SubtaskSnapshot(0, 0, (OperatorSnapshot("op", None, "op", KeyedFiles(0, 127, files)),))


def plan(*files):
    operator = OperatorRestore("op", (KeyedFiles(0, 127, files),))
    return RestorePlan("remote", 1, {SubtaskId(0, 0): SubtaskRestore((operator,))})


def local_paths(tmp_path):
    root = tmp_path / "local"
    return sorted(p.name for p in root.rglob("*") if p.is_file())


def test_what_was_written_is_read_from_the_copy(tmp_path, remote):
    file = write_state(copies(tmp_path).copying(remote), "shared/1-a", b"state", 0)
    again = copies(tmp_path)
    assert read_state(again.reading(remote, plan(file)), file) == b"state"
    assert remote.reads == [] and again.used == 1


def test_another_slot_has_copies_of_its_own(tmp_path, remote):
    file = write_state(copies(tmp_path, slot=0).copying(remote), "shared/1-a", b"state", 0)
    other = copies(tmp_path, slot=1)
    assert read_state(other.reading(remote, plan(file)), file) == b"state"
    assert remote.reads == ["shared/1-a"] and other.used == 0


@pytest.mark.parametrize("damage", ["gone", "cut", "flipped", "foreign", "empty"])
def test_a_damaged_copy_is_skipped_silently(tmp_path, remote, damage, caplog):
    writing = copies(tmp_path)
    file = write_state(writing.copying(remote), "shared/1-a", random.Random(1).randbytes(100), 0)
    write_state(writing.copying(remote), "shared/1-b", random.Random(2).randbytes(100), 0)
    path = tmp_path / "local" / f"tamias-local-{JOB}" / "slot-0" / "shared" / "1-a"
    data = bytearray(path.read_bytes())
    if damage == "gone":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(data[:-1])
    elif damage == "flipped":
        data[-1] ^= 1
        path.write_bytes(data)
    elif damage == "foreign":
        path.write_bytes(path.with_name("1-b").read_bytes())
    else:
        path.write_bytes(b"")
    reading = copies(tmp_path)
    assert read_state(reading.reading(remote, plan(file)), file) == random.Random(1).randbytes(100)
    assert remote.reads == ["shared/1-a"] and reading.used == 0
    assert not caplog.records


def test_a_completed_checkpoint_takes_the_place_of_older_copies(tmp_path, remote):
    local = copies(tmp_path)
    store = local.copying(remote)
    a, b = (write_state(store, f"shared/1-{name}", b"state", 0) for name in "ab")
    local.written(1, snapshot(a, b))
    local.completed(1)
    c = write_state(store, "shared/2-c", b"state", 0)
    local.written(2, snapshot(a, c))
    d = write_state(store, "shared/3-d", b"state", 0)
    local.written(3, snapshot(a, c, d))
    local.completed(2)
    assert local_paths(tmp_path) == ["1-a", "2-c", "3-d"]
    # The next slot of that number deletes old copies too, although it does not know of their checkpoints.
    again = copies(tmp_path)
    e = write_state(again.copying(remote), "shared/4-e", b"state", 0)
    again.written(4, snapshot(e))
    again.completed(4)
    assert local_paths(tmp_path) == ["4-e"]


def test_without_the_settings_nothing_is_copied_and_nothing_is_read(tmp_path, remote):
    file = write_state(copies(tmp_path, write=False).copying(remote), "shared/1-a", b"state", 0)
    assert local_paths(tmp_path) == []
    write_state(copies(tmp_path).copying(remote), "shared/1-b", b"state", 0)
    reading = copies(tmp_path, read=False)
    assert read_state(reading.reading(remote, plan(file)), file) == b"state"
    assert remote.reads == ["shared/1-a"]


def test_a_copy_that_cannot_be_written_is_logged_and_skipped(tmp_path, remote, caplog):
    (tmp_path / "local").write_text("in the way")
    file = write_state(copies(tmp_path).copying(remote), "shared/1-a", b"state", 0)
    assert read_state(remote, file) == b"state"
    assert "no local copy of shared/1-a" in caplog.text


def test_copies_are_removed_with_the_job(tmp_path, remote):
    one, two = copies(tmp_path, slot=0), copies(tmp_path, slot=1)
    for local in (one, two):
        write_state(local.copying(remote), f"shared/1-{id(local)}", b"state", 0)
    one.remove()
    assert len(local_paths(tmp_path)) == 1
    two.remove()
    assert list((tmp_path / "local").iterdir()) == []


def test_a_restarted_slot_reads_its_state_from_its_own_disk(tmp_path):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.enable_checkpointing(10)
    env.from_collection(range(100)).key_by(lambda v: v % 10).sum().print()
    graph = drawn_job(env, "job").graph
    events = queue.SimpleQueue()
    settings = LocalCopySettings(write=True, read=True, directories=(str(tmp_path / "local"),))
    common = {
        "checkpoint_directory": str(tmp_path / "remote"),
        "inline_threshold": 0,
        "local_copies": settings,
    }
    subtasks = [SubtaskId(vertex.id, 0) for vertex in graph.vertices]

    def run(host, order):
        blobs = {SubtaskId(0, 0): []}
        targets = {e.id: e.target for e in graph.exchanges}
        for subtask in subtasks:
            for item in host.run(subtask, host.attempt, order, blobs.get(subtask, [])):
                if not isinstance(item, Ack):
                    blobs.setdefault(SubtaskId(targets[item.exchange], item.target), []).append(item)

    killed = SlotHost(0, SystemClock(), events.put, str(tmp_path / "slot"))
    killed.deploy(Deployment(JOB, graph, 0, **common), subtasks)
    run(killed, EpochOrder(0, checkpoint_id=1))
    snapshots = [events.get(timeout=30).snapshot for _ in subtasks]
    killed.checkpoint_completed(1)
    restore = RestorePlan(
        str(tmp_path / "remote"),
        1,
        {
            SubtaskId(s.vertex, s.subtask): SubtaskRestore(
                tuple(
                    OperatorRestore(o.operator_id, (o.keyed,) if o.keyed else (), (o.operator_state,), o.states, 1)
                    for o in s.operators
                )
            )
            for s in snapshots
        },
    )
    host = SlotHost(0, SystemClock(), events.put, str(tmp_path / "new slot"))
    host.deploy(Deployment(JOB, graph, 1, restore=restore, **common), subtasks)
    assert host.local_copies.used == sum(len(files) for _, _, files in os.walk(tmp_path / "remote"))
    host.shutdown()
    assert local_paths(tmp_path) == []
    killed.abandon()
    killed.shutdown()
