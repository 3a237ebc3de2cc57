"""The host of a slot's subtasks: an epoch runs once, and no epoch runs after a failed one."""

import os
import pickle
import queue
import threading
from typing import Any

import pytest

from ekorn.clock import SystemClock
from ekorn.datastream.functions import MapFunction
from ekorn.errors import SlotLostError, UserFunctionError
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import CachedFile
from ekorn.operators.epoch import Ack, EpochOrder, SavepointOrder
from ekorn.slot.host import SlotHost
from ekorn.slot.state.snapshot_writer import SnapshotWriter
from ekorn.slot_protocol.slot_events import SnapshotNotWritten, SnapshotWritten
from ekorn.state.snapshots import RestorePlan
from tests.slot.small_job import SOURCE, SUM, deployment, graph, summing


@pytest.fixture
def host(tmp_path):
    of = graph(summing, checkpoints=True)
    events = queue.SimpleQueue()
    made: Any = SlotHost(0, SystemClock(), events.put, str(tmp_path / "slot"))
    made.events, made.graph = events, of
    made.deploy(deployment(of), [SOURCE, SUM])
    yield made
    made.shutdown()


def run(host, subtask, order, attempt=0, blobs=()):
    return list(host.run(subtask, attempt, order, list(blobs)))


def test_an_epoch_is_run_once_whatever_spark_retries(host):
    run(host, SOURCE, EpochOrder(5))
    for number in (5, 4):
        with pytest.raises(SlotLostError, match="has already run here"):
            run(host, SOURCE, EpochOrder(number))
    run(host, SOURCE, EpochOrder(6))


def test_an_epoch_of_another_attempt_or_of_an_unknown_subtask_is_refused(host):
    for subtask, attempt in ((SOURCE, 1), (SubtaskId(0, 1), 0)):
        with pytest.raises(SlotLostError, match="it hosts attempt 0"):
            run(host, subtask, EpochOrder(0), attempt)


def test_after_an_epoch_that_broke_off_no_epoch_runs_until_the_next_deployment(host):
    broken = host.run(SOURCE, 0, EpochOrder(0), [])
    next(broken)
    broken.close()  # as when the Spark task has died
    with pytest.raises(SlotLostError):
        run(host, SUM, EpochOrder(0))
    host.deploy(deployment(host.graph, attempt=1), [SOURCE, SUM])
    assert isinstance(run(host, SOURCE, EpochOrder(0), attempt=1)[-1], Ack)


def of_region(host, attempt, *, only):
    return deployment(host.graph, attempt=attempt, only=frozenset(only))


def test_a_subtask_that_goes_on_keeps_its_state_and_its_epochs_and_another_runs_its_epochs_again(host):
    run(host, SOURCE, EpochOrder(0))
    run(host, SUM, EpochOrder(0))
    before = host.subtasks[SOURCE]
    host.deploy(of_region(host, 1, only=[SUM]), [SOURCE, SUM])
    assert host.subtasks[SOURCE] is before
    assert list(host.subtasks) == [SOURCE, SUM]
    with pytest.raises(SlotLostError, match="has already run here"):
        run(host, SOURCE, EpochOrder(0), attempt=1)
    run(host, SUM, EpochOrder(0), attempt=1)


def test_a_subtask_whose_epoch_broke_off_cannot_go_on(host):
    broken = host.run(SOURCE, 0, EpochOrder(0), [])
    next(broken)
    broken.close()
    with pytest.raises(SlotLostError, match="lost the state of subtasks that were to continue"):
        host.deploy(of_region(host, 1, only=[SUM]), [SOURCE, SUM])


def test_a_subtask_that_a_slot_does_not_have_cannot_go_on(host):
    host.drop_subtasks()
    with pytest.raises(SlotLostError, match="lost the state of subtasks that were to continue"):
        host.deploy(of_region(host, 1, only=[SUM]), [SOURCE, SUM])


def test_snapshots_are_reported_when_they_are_written_and_not_for_the_settled(host):
    run(host, SOURCE, EpochOrder(0, checkpoint_id=1))
    run(host, SUM, EpochOrder(0, checkpoint_id=1, settled=frozenset({SUM})))
    run(host, SOURCE, EpochOrder(1, checkpoint_id=2))
    first, second = (host.events.get(timeout=30) for _ in range(2))
    assert isinstance(first, SnapshotWritten)
    assert (first.checkpoint_id, first.snapshot.vertex, first.snapshot.finished) == (1, 0, True)
    assert (second.checkpoint_id, second.snapshot.vertex) == (2, 0)


def test_a_snapshot_that_cannot_be_written_is_reported_with_the_reason(tmp_path):
    of = graph(summing, checkpoints=True)
    events = queue.SimpleQueue()
    host = SlotHost(0, SystemClock(), events.put, str(tmp_path / "slot"))
    host.deploy(deployment(of, max_state_bytes=1), [SOURCE])
    run(host, SOURCE, EpochOrder(0, checkpoint_id=1))
    event = events.get(timeout=30)
    host.shutdown()
    assert isinstance(event, SnapshotNotWritten)
    assert "too large" in event.why and "Collection Source" in event.why


@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_synchronous_snapshot_is_written_before_the_epoch_is_acknowledged(asynchronous, tmp_path):
    of = graph(summing, checkpoints=True)
    events, acknowledged = queue.SimpleQueue(), threading.Event()
    if not asynchronous:
        acknowledged.set()

    def report(event):
        assert acknowledged.wait(30)
        events.put(event)

    host = SlotHost(0, SystemClock(), report, str(tmp_path / "slot"))
    host.deploy(deployment(of, asynchronous=asynchronous), [SOURCE])
    answers = host.run(SOURCE, 0, EpochOrder(0, checkpoint_id=1), [])
    assert any(isinstance(answer, Ack) for answer in answers)
    assert events.empty() is asynchronous
    acknowledged.set()
    assert isinstance(events.get(timeout=30), SnapshotWritten)
    host.shutdown()


def test_a_savepoint_is_written_to_its_own_directory(tmp_path):
    of = graph(summing, checkpoints=True)
    events = queue.SimpleQueue()
    host = SlotHost(0, SystemClock(), events.put, str(tmp_path / "slot"))
    host.deploy(deployment(of, checkpoint_directory=str(tmp_path / "job"), inline_threshold_bytes=0), [SOURCE])
    run(host, SOURCE, EpochOrder(0, checkpoint_id=1, savepoint=SavepointOrder(str(tmp_path / "savepoint"))))
    snapshot = events.get(timeout=30).snapshot
    host.shutdown()
    paths = [o.operator_state.path for o in snapshot.operators if o.operator_state is not None]
    assert paths and sorted(paths) == sorted(os.listdir(tmp_path / "savepoint"))
    assert all(path.startswith("v0-s0-") for path in paths)
    assert not (tmp_path / "job").exists()


def test_snapshots_of_an_attempt_that_is_over_are_not_written(host):
    gate, written = threading.Event(), threading.Event()

    class Slow:
        def __init__(self, inner):
            self.inner = inner
            self.environment, self.checkpoint_id, self.savepoint = inner.environment, inner.checkpoint_id, None

        def write(self, target):
            written.set()
            gate.wait(30)
            return self.inner.write(target)

    list(host.run(SOURCE, 0, EpochOrder(0), []))
    captured = host.subtasks[SOURCE].snapshot(1)
    events = queue.SimpleQueue()
    writer = SnapshotWriter(events.put)
    writer.begin(deployment(host.graph))
    writer.add(Slow(captured))  # type: ignore[arg-type]
    assert written.wait(30)
    writer.add(captured)  # waits in the queue behind the first
    writer.begin(deployment(host.graph, attempt=1))
    gate.set()
    writer.stop()
    assert events.get(timeout=30).attempt == 0
    assert events.empty(), "the second one was skipped"


def test_a_slot_leaves_no_folder_behind(host, tmp_path):
    host.files.fetch([CachedFile("this file", __file__)])
    assert os.path.isfile(host.files.path_of("this file"))
    host.shutdown()
    assert list(tmp_path.iterdir()) == []


def test_close_reaches_every_subtask_although_one_fails(tmp_path):
    class Closes(MapFunction):
        def __init__(self, name):
            self.name = name

        def map(self, value):
            return value

        def close(self):
            CLOSED.append(self.name)
            raise ValueError(f"{self.name} does not close")

    def draw(env):
        env.from_collection([1]).map(Closes("a")).map(Closes("b")).rebalance().map(Closes("c")).print()

    of = graph(draw)
    CLOSED.clear()
    host = SlotHost(0, SystemClock(), CLOSED.append, str(tmp_path / "slot"))
    host.deploy(deployment(of), [SubtaskId(vertex.id, 0) for vertex in of.vertices])
    with pytest.raises(UserFunctionError, match="does not close"):
        host.close_subtasks()
    host.shutdown()
    assert CLOSED == ["c", "b", "a"], "the end of the graph first"


CLOSED = []


def test_a_savepoint_whose_order_came_without_its_address_goes_where_the_driver_said(tmp_path):
    of = graph(summing, checkpoints=True)
    events = queue.SimpleQueue()
    host = SlotHost(0, SystemClock(), events.put, str(tmp_path / "slot"))
    host.deploy(deployment(of, checkpoint_directory=str(tmp_path / "job"), inline_threshold_bytes=0), [SOURCE])
    savepoint = SavepointOrder(str(tmp_path / "savepoint"))
    host.begin_savepoint(1, savepoint)
    run(host, SOURCE, EpochOrder(0, checkpoint_id=1, savepoint=savepoint).without_address())
    assert isinstance(events.get(timeout=30), SnapshotWritten)
    with pytest.raises(SlotLostError, match="it was not told where savepoint 2 goes"):
        run(host, SOURCE, EpochOrder(1, checkpoint_id=2, savepoint=savepoint).without_address())
    host.shutdown()
    assert os.listdir(tmp_path / "savepoint")
    assert not (tmp_path / "job").exists()


def test_an_order_without_address_holds_no_part_of_the_address():
    order = EpochOrder(3, checkpoint_id=7, savepoint=SavepointOrder("s3://key:canary@bucket/dir", native=True))
    assert b"canary" in pickle.dumps(order)
    sent = order.without_address()
    assert b"canary" not in pickle.dumps(sent) and b"bucket" not in pickle.dumps(sent)
    assert sent.savepoint_apart and sent.checkpoint_id == 7
    assert EpochOrder(3).without_address() == EpochOrder(3)


def test_a_new_attempt_forgets_where_a_savepoint_of_the_old_one_goes(host, tmp_path):
    savepoint = SavepointOrder(str(tmp_path / "savepoint"))
    host.begin_savepoint(1, savepoint)
    host.deploy(deployment(host.graph, attempt=1), [SOURCE, SUM])
    with pytest.raises(SlotLostError, match="it was not told where savepoint 1 goes"):
        run(host, SOURCE, EpochOrder(0, checkpoint_id=1, savepoint=savepoint).without_address(), attempt=1)


def test_records_that_wait_in_a_loop_are_dropped_with_the_attempt_and_kept_where_only_a_region_restarts(host):
    waiting: Any = object()
    host.subtasks[SOURCE].environment.feedback_queues["loop"] = waiting
    host.deploy(of_region(host, 1, only=[SUM]), [SOURCE, SUM])
    for subtask in (SOURCE, SUM):
        assert host.subtasks[subtask].environment.feedback_queues == {"loop": waiting}
    host.deploy(deployment(host.graph, attempt=2), [SOURCE, SUM])
    assert host.subtasks[SUM].environment.feedback_queues == {}


@pytest.mark.parametrize(
    ("restored_from", "checkpoints_in", "shares"),
    [("job", "job", True), ("other", "job", False), ("job", None, False), (None, "job", False), (None, None, False)],
)
def test_restored_files_are_shared_with_new_checkpoints_in_the_jobs_own_directory_alone(
    host, tmp_path, restored_from, checkpoints_in, shares
):
    def folder(name):
        return None if name is None else str(tmp_path / name)

    restore = None if restored_from is None else RestorePlan(str(tmp_path / restored_from), 1, {})
    of = deployment(host.graph, 1, restore=restore, checkpoint_directory=folder(checkpoints_in))
    host.deploy(of, [SOURCE, SUM])
    assert host.subtasks[SUM].environment.reuses_restored is shares


def test_a_host_without_a_folder_makes_one_and_removes_it():
    host = SlotHost(0, SystemClock(), lambda event: None)
    folder = host.existing_folder()
    assert os.path.isdir(folder) and os.path.exists(f"{folder}.lock")
    host.shutdown()
    assert not os.path.exists(folder) and not os.path.exists(f"{folder}.lock")


def test_subtasks_that_have_failed_do_not_hear_of_an_aborted_checkpoint(host, monkeypatch):
    heard = []
    for subtask in (SOURCE, SUM):
        monkeypatch.setattr(host.subtasks[subtask], "checkpoint_aborted", lambda n, of=subtask: heard.append((of, n)))
    host.checkpoint_aborted(2, failed={SOURCE})
    host.checkpoint_aborted(3)
    assert heard == [(SUM, 2), (SUM, 3), (SOURCE, 3)]


def test_the_attempt_is_the_last_one_that_was_deployed(tmp_path):
    host = SlotHost(0, SystemClock(), lambda event: None, str(tmp_path / "slot"))
    assert (host.attempt, host.local_copies) == (None, None)
    host.checkpoint_completed(1)
    host.checkpoint_aborted(2)
    host.deploy(deployment(graph(summing), attempt=7), [SOURCE])
    assert host.attempt == 7
    host.shutdown()
