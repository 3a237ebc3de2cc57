"""A slot whose subtasks run continuously: driven over its connections as a driver and Spark's tasks do it."""

from __future__ import annotations

import pickle
import queue
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ekorn.clock import SystemClock
from ekorn.common import Configuration, WatermarkStrategy
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.datastream.functions import MapFunction
from ekorn.errors import SlotLostError
from ekorn.graph.addresses import SubtaskId
from ekorn.links.link import Link, connect
from ekorn.operators.mark import MarkOrder
from ekorn.slot.continuous.mailbox import Mailbox
from ekorn.slot.continuous.subtask_runner import SubtaskRunner, buffer_timeout_s
from ekorn.slot.event_reports import Reports
from ekorn.slot.host import SlotHost
from ekorn.slot.slot_server import SlotServer
from ekorn.slot.user_code_lock import UserCodeLock
from ekorn.slot_protocol.deployment_codec import encode_deployment
from ekorn.slot_protocol.messages import CloseSubtasks, Deploy, Discard, OrderEpoch, Subscribe
from ekorn.slot_protocol.slot_config import SlotConfig
from ekorn.slot_protocol.slot_events import EpochAcknowledged, OutputLeft, SlotActivity, SnapshotWritten, SubtaskFailed
from ekorn.slot_protocol.task_messages import FAILED, Attach, Carries
from ekorn.subtask.wire.frames import EPOCH, RECORDS, WATERMARK, Blob
from ekorn.types.by_value import dumps
from tests.live_jobs import Tracks, comes_to_rest, until
from tests.slot.small_job import SOURCE, SUM, deployment, graph, summing

SECRET = b"s" * 32


class Slot:
    """A slot, the driver's connections to it, and what it reports."""

    def __init__(self, tmp_path: Path) -> None:
        self.server = SlotServer(
            SlotConfig(0, str(tmp_path / "socket"), SECRET, str(tmp_path / "f"), [], heartbeat_s=0.02)
        )
        self.server.start()
        self.control = self.connected()
        self._events = self.connected()
        self.ask(Subscribe(), self._events)
        self.heard: list[Any] = []

    def connected(self) -> Link:
        link = connect(self.server.address, SECRET)
        link.settimeout(30)
        return link

    def ask(self, request: Any, link: Link | None = None) -> BaseException | None:
        asked = link or self.control
        asked.send(dumps(request))
        error: BaseException | None = pickle.loads(asked.receive()).error
        return error

    def deploy(self, draw: Any = summing, attempt: int = 0, **settings: Any) -> None:
        of = deployment(graph(draw, checkpoints=True), attempt, continuous=True, **settings)
        assert self.ask(Deploy(encode_deployment(of), [SOURCE, SUM])) is None

    def attach(self, subtask: SubtaskId, attempt: int = 0, carries: Carries = Carries.BOTH) -> Link:
        link = self.connected()
        link.send(dumps(Attach(subtask, attempt, carries)))
        return link

    def order(self, order: MarkOrder, attempt: int = 0) -> None:
        assert self.ask(OrderEpoch(attempt, order)) is None

    def hear(self, kind: type) -> Any:
        """Return the next event of a kind; heartbeats and others are remembered."""
        deadline = time.monotonic() + 30
        while True:
            assert time.monotonic() < deadline, f"no {kind.__name__}"
            event = pickle.loads(self._events.receive())
            self.heard.append(event)
            if isinstance(event, kind):
                return event


@pytest.fixture
def slot(tmp_path: Path) -> Iterator[Slot]:
    made = Slot(tmp_path)
    yield made
    made.server.stop()


def carry(source: Link, target: Link) -> threading.Thread:
    """Carry blobs from one subtask to the next, as Spark does, until the source's task may end."""

    def run() -> None:
        try:
            while message := source.receive():
                target.send(message)
        except (EOFError, OSError):
            pass  # the connection was broken off

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def acknowledged(slot: Slot, count: int) -> dict[SubtaskId, Any]:
    found = {}
    while len(found) < count:
        event = slot.hear(EpochAcknowledged)
        assert event.attempt == 0
        found[SubtaskId(event.ack.vertex, event.ack.subtask)] = event.ack
    return found


def test_a_source_needs_no_task_that_brings_input_and_a_sink_none_that_takes_output(slot: Slot) -> None:
    slot.deploy()
    source = slot.attach(SOURCE, carries=Carries.OUTPUT)
    target = slot.attach(SUM, carries=Carries.INPUT)
    carrying = carry(source, target)
    slot.order(MarkOrder(0, checkpoint_id=1))
    assert {ack.epoch for ack in acknowledged(slot, 2).values()} == {0}
    assert slot.ask(Discard()) is None
    carrying.join(30)
    assert not carrying.is_alive()


def test_subtasks_run_once_their_tasks_have_called_and_end_epochs_where_the_mark_is(slot: Slot) -> None:
    slot.deploy()
    source, target = slot.attach(SOURCE), slot.attach(SUM)
    carrying = carry(source, target)
    slot.order(MarkOrder(0, checkpoint_id=1))
    acks = acknowledged(slot, 2)
    assert {ack.epoch for ack in acks.values()} == {0}
    written = {slot.hear(SnapshotWritten).checkpoint_id} if not any_written(slot) else {1}
    assert written == {1}
    lines = sorted(acks[SUM].lines)
    number = 1
    while lines != ["1", "2", "4"]:  # records may arrive behind the mark of the first epoch
        slot.order(MarkOrder(number))
        lines = sorted([*lines, *acknowledged(slot, 2)[SUM].lines])
        number += 1
        assert number < 50
    assert slot.ask(CloseSubtasks()) is None
    assert target.receive() == b"", "the subtask has finished, and its task may end"
    carrying.join(30)
    assert not carrying.is_alive()


def any_written(slot: Slot) -> bool:
    return any(isinstance(event, SnapshotWritten) for event in slot.heard)


@pytest.mark.parametrize(
    ("subtask", "message", "reason"),
    [
        (
            SUM,
            b"B\0\0",
            "the Spark task that .* of Reduce .* delivered input that the subtask cannot read: a message of 3 bytes",
        ),
        (
            SUM,
            b"".join(Blob(0, 0, 0, 0, b"\x80\x05]").encode()),
            "blob 0 from subtask 0 over exchange 0 cannot be decoded",
        ),
        (SUM, b"".join(Blob(7, 0, 0, 0, dumps([])).encode()), "blob 0 arrived on ChannelId.exchange=7, sender=0."),
        (SOURCE, b"".join(Blob(0, 0, 0, 0, dumps([])).encode()), "arrived at a source"),
    ],
)
def test_what_cannot_be_decoded_fails_the_attempt_and_names_the_channel(
    slot: Slot, subtask: SubtaskId, message: bytes, reason: str
) -> None:
    slot.deploy()
    task = slot.attach(subtask)
    task.send(message)
    failed = slot.hear(SubtaskFailed)
    assert failed.subtask == subtask and re.search(reason, str(pickle.loads(failed.pickled_error)))


def test_heartbeats_tell_the_newest_epoch_and_who_has_ended_it(slot: Slot) -> None:
    slot.deploy()
    carry(slot.attach(SOURCE), slot.attach(SUM))
    for number in (0, 1):
        slot.order(MarkOrder(number))
        acknowledged(slot, 2)
        while True:
            activity = slot.hear(SlotActivity)
            if activity.epoch == number and activity.answered == {SOURCE, SUM}:
                break
    assert activity.messages >= 4, "a blob or more of each epoch left the source and reached the sum"


def test_a_task_that_nobody_waits_for_is_refused(slot: Slot) -> None:
    slot.deploy()
    Blob.decode(slot.attach(SOURCE).receive())  # its task has called
    for subtask, attempt in ((SOURCE, 0), (SUM, 1), (SubtaskId(7, 0), 0)):
        refused = slot.attach(subtask, attempt)
        message = refused.receive()
        assert message[:1] == FAILED
        error = pickle.loads(message[1:])
        assert isinstance(error, SlotLostError)
        assert f"does not wait for a task of attempt {attempt} for {subtask}" in str(error)


def test_orders_of_another_attempt_are_not_obeyed(slot: Slot) -> None:
    slot.deploy(attempt=1)
    source = slot.attach(SOURCE, 1)
    carry(source, slot.attach(SUM, 1))
    slot.order(MarkOrder(0), attempt=0)
    slot.order(MarkOrder(1), attempt=1)
    event = slot.hear(EpochAcknowledged)
    assert (event.attempt, event.ack.epoch) == (1, 1)


class FailsAt(MapFunction):
    def map(self, value: int) -> int:
        if value == 2:
            raise ValueError("no two")
        return value


def failing(env: Any) -> None:
    env.from_collection([1, 2, 3]).map(FailsAt()).key_by(lambda v: v % 2).sum().print()


def test_a_subtask_that_fails_ends_the_attempt_of_its_slot(slot: Slot) -> None:
    slot.deploy(failing)
    source, target = slot.attach(SOURCE), slot.attach(SUM)
    failed = slot.hear(SubtaskFailed)
    assert (failed.attempt, failed.subtask) == (0, SOURCE)
    assert "no two" in str(pickle.loads(failed.pickled_error))
    for link in (source, target):
        with pytest.raises((EOFError, OSError)):
            while True:
                link.receive()
    slot.deploy(attempt=1)  # and the next one runs
    carry(slot.attach(SOURCE, 1), slot.attach(SUM, 1))
    slot.order(MarkOrder(5), attempt=1)
    assert slot.hear(EpochAcknowledged).attempt == 1


def test_a_task_that_is_gone_is_told_to_the_driver(slot: Slot) -> None:
    slot.deploy()
    source = slot.attach(SOURCE)
    Blob.decode(source.receive())
    source.close()
    failed = slot.hear(SubtaskFailed)
    assert failed.subtask == SOURCE
    assert re.search(r"takes the output of .* is gone", str(pickle.loads(failed.pickled_error)))


def test_discarding_breaks_the_connections_and_a_new_attempt_begins_anew(slot: Slot) -> None:
    slot.deploy()
    source = slot.attach(SOURCE)
    Blob.decode(source.receive())
    while (before := slot.hear(SlotActivity).messages) < 1:
        pass  # the blob is counted once it is sent
    assert slot.ask(Discard()) is None
    with pytest.raises((EOFError, OSError)):
        while True:
            source.receive()
    slot.deploy(attempt=1)
    carry(slot.attach(SOURCE, 1), slot.attach(SUM, 1))
    slot.order(MarkOrder(0), attempt=1)
    assert slot.hear(EpochAcknowledged).attempt == 1
    assert not any(isinstance(event, SubtaskFailed) for event in slot.heard)
    while slot.hear(SlotActivity).messages <= before:
        pass


def test_an_order_is_taken_while_the_code_of_the_user_hangs(slot: Slot, tmp_path: Path) -> None:
    entered, gate = tmp_path / "entered", tmp_path / "gate"

    def hanging(env: Any) -> None:
        def hang(value: int) -> int:
            entered.touch()
            while not gate.exists():
                time.sleep(0.01)
            return value

        env.from_collection([1, 2, 3]).map(hang).key_by(lambda v: v % 2).sum().print()

    slot.deploy(hanging)
    carry(slot.attach(SOURCE), slot.attach(SUM))
    until(entered.exists)
    slot.control.settimeout(30)
    try:
        slot.order(MarkOrder(0))  # else the driver could not be told to cancel the job
        assert not any(isinstance(event, EpochAcknowledged) for event in slot.heard)
    finally:
        gate.touch()
    assert acknowledged(slot, 2).keys() == {SOURCE, SUM}


def test_a_late_loss_of_a_task_belongs_to_the_attempt_of_the_task() -> None:
    host = SlotHost(0, SystemClock(), lambda event: None)
    mailbox = Mailbox(host, UserCodeLock(), SystemClock(), Reports())
    failures: queue.SimpleQueue[tuple[SubtaskId, int]] = queue.SimpleQueue()
    mailbox.failed = lambda subtask, attempt, error: failures.put((subtask, attempt))
    first = deployment(graph(summing), 0, continuous=True)
    host.deploy(first, [SOURCE, SUM])
    mailbox.begin(first)
    ours, theirs = socket.socketpair()
    serving = threading.Thread(target=mailbox.serve, args=(Attach(SUM, 0, Carries.BOTH), Link(ours)), daemon=True)
    serving.start()
    host.deploy(deployment(graph(summing), 1, continuous=True), [SOURCE, SUM])
    theirs.close()
    assert failures.get(timeout=30) == (SUM, 0)
    mailbox.stop()
    host.shutdown()


def test_output_of_a_source_with_a_backlog_leaves_after_the_buffer_timeout(slot: Slot) -> None:
    def one_of_many(env: Any) -> None:
        env.get_config().set_auto_watermark_interval(0)
        source = DataGeneratorSource(lambda n: n, 1 << 60)
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        numbers.filter(lambda v: v == 0).key_by(lambda v: v).sum().print()

    slot.deploy(one_of_many, buffer_timeout_ms=1)
    source = slot.attach(SOURCE)
    source.settimeout(30)
    assert (RECORDS, [0]) in [frame[:2] for frame in Blob.decode(source.receive()).frames()]


def test_an_interruption_in_the_code_of_the_user_ends_the_attempt_and_not_the_thread(slot: Slot) -> None:
    def interrupted(env: Any) -> None:
        def interrupt(value: int) -> int:
            raise KeyboardInterrupt

        env.from_collection([1, 2, 3]).map(interrupt).key_by(lambda v: v % 2).sum().print()

    slot.deploy(interrupted)
    source = slot.attach(SOURCE)
    until(lambda: isinstance(slot.hear(object), SubtaskFailed))
    assert "KeyboardInterrupt" in str(pickle.loads(slot.heard[-1].pickled_error))
    source.close()
    slot.deploy(attempt=1)
    carry(slot.attach(SOURCE, 1), slot.attach(SUM, 1))
    slot.order(MarkOrder(0), attempt=1)
    assert slot.hear(EpochAcknowledged).attempt == 1


def test_a_driver_that_takes_no_output_stops_the_subtask_that_puts_it_out(slot: Slot, tmp_path: Path) -> None:
    read = Tracks(tmp_path / "read")

    def printing(env: Any) -> None:
        source = DataGeneratorSource(lambda n: read("x" * 100_000), 5_000)
        lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines")
        lines.print()
        lines.filter(lambda v: False).key_by(lambda v: v).reduce(lambda a, b: a).print()

    slot.deploy(printing)
    carry(slot.attach(SOURCE), slot.attach(SUM))
    until(lambda: read.count > 0)
    until(lambda: comes_to_rest(read))
    before = read.count
    assert before < 500, "some megabytes wait in the slot"
    while read.count < before + 100:
        slot.hear(OutputLeft)


@pytest.mark.parametrize(
    ("default_ms", "set_ms", "timeout_s"),
    [(100, None, 0.1), (-1, None, None), (0, None, 0.0), (100, 5, 0.005), (100, 0, 0.0), (100, -1, None)],
)
def test_the_buffer_timeout_is_that_of_the_last_operator_that_sets_one_else_that_of_the_job(
    default_ms: int, set_ms: int | None, timeout_s: float | None
) -> None:
    def draw(env: Any) -> None:
        mapped = env.from_collection([1]).set_buffer_timeout(7_000).map(lambda v: v)
        mapped = mapped if set_ms is None else mapped.set_buffer_timeout(set_ms)
        mapped.key_by(lambda v: v).sum().print()

    first, second = graph(draw).vertices
    assert buffer_timeout_s(first, default_ms) == (7.0 if set_ms is None else timeout_s)
    assert buffer_timeout_s(second, default_ms) == (None if default_ms < 0 else default_ms / 1000)


def test_a_periodic_watermark_leaves_by_the_interval_though_no_epoch_is_ordered(slot: Slot) -> None:
    def one_record(env: Any) -> None:
        env.get_config().set_auto_watermark_interval(10)
        source = DataGeneratorSource(lambda n: n, 1 << 60, RateLimiterStrategy.per_second(0.01))
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: 5_000)
        env.from_source(source, strategy, "numbers").key_by(lambda v: v).sum().print()

    slot.deploy(one_record)
    source = slot.attach(SOURCE)
    source.settimeout(30)
    frames: list[Any] = []
    while (WATERMARK, 4_999) not in frames:
        frames += Blob.decode(source.receive()).frames()
    assert [frame[:2] for frame in frames if frame[0] == RECORDS] == [(RECORDS, [0])]


def test_blobs_that_wait_for_a_mark_go_to_disk_beyond_the_bound(tmp_path: Path) -> None:
    limit_bytes, sizes = 100_000, [60_000, 60_000, 60_000]

    def draw(env: Any) -> None:
        env.configure(Configuration().set_string("ekorn.exchange.slot-memory", f"{limit_bytes} b"))
        env.from_sequence(0, 9).rebalance().map(len).print()

    of = deployment(graph(draw, parallelism=2, checkpoints=True), continuous=True)
    (exchange,) = of.graph.exchanges
    host, clock = SlotHost(0, SystemClock(), lambda event: None, str(tmp_path / "slot")), SystemClock()
    receiver = SubtaskId(exchange.target, 0)
    host.deploy(of, [receiver])
    reports = Reports()
    runner = SubtaskRunner(host, receiver, of, Mailbox(host, UserCodeLock(), clock, reports))
    ours, theirs = socket.socketpair()
    assert runner.attach(Link(ours), Carries.BOTH)

    def give(sender: int, sequence: int, *frames: Any) -> None:
        runner.give(Blob(exchange.id, sender, 0, sequence, dumps(list(frames))))

    order = MarkOrder(0)
    give(0, 0, (EPOCH, order))
    for sequence, size in enumerate(sizes, start=1):
        give(0, sequence, (RECORDS, [bytes(size)], None))
    for _ in range(1 + len(sizes)):
        runner.step(clock.monotonic())
    assert runner.spilled_bytes >= sum(sizes) - limit_bytes
    give(1, 0, (EPOCH, order))
    while runner.step(clock.monotonic()) == 0:
        pass
    assert runner.spilled_bytes == 0, "they have been processed"
    runner.give_order(MarkOrder(1))
    give(0, 1 + len(sizes), (EPOCH, MarkOrder(1)))
    give(1, 1, (EPOCH, MarkOrder(1)))
    while runner.step(clock.monotonic()) == 0:
        pass
    heard = [reports.get(30) for _ in range(2)]
    acks = [event.ack for event in heard if isinstance(event, EpochAcknowledged)]
    assert [(ack.epoch, ack.deferred_blobs) for ack in acks] == [(0, len(sizes)), (1, 0)]
    assert sorted(line.partition("> ")[2] for line in acks[1].lines) == [str(size) for size in sizes]
    runner.leave(in_order=False)
    host.shutdown()
    theirs.close()


class Runner:
    """Notes what a subtask is told."""

    def __init__(self) -> None:
        self.messages, self.told = 3, list[object]()

    def checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.told.append(("aborted", checkpoint_id))

    def pause_reading(self) -> None:
        self.told.append("pauses")

    def give_order(self, order: MarkOrder) -> None:
        self.told.append(order)

    def leave(self, *, in_order: bool) -> None:
        self.told.append(("leaves", in_order))


def mailbox_of(tmp_path: Path) -> tuple[Mailbox, dict[SubtaskId, Runner]]:
    config = SlotConfig(0, str(tmp_path / "s"), SECRET, str(tmp_path / "f"), [])
    server = SlotServer(config)
    runners = {SOURCE: Runner(), SUM: Runner()}
    server._mailbox._runners = dict(runners)  # type: ignore[arg-type]
    return server._mailbox, runners


def test_every_subtask_is_told_of_orders_pauses_and_aborted_checkpoints(tmp_path: Path) -> None:
    mailbox, runners = mailbox_of(tmp_path)
    mailbox.order(MarkOrder(4))
    mailbox.pause_sources()
    mailbox.checkpoint_aborted(7)
    assert [runner.told for runner in runners.values()] == [[MarkOrder(4), "pauses", ("aborted", 7)]] * 2


@pytest.mark.parametrize("in_order", [True, False])
def test_subtasks_that_end_leave_and_their_messages_still_count(tmp_path: Path, in_order: bool) -> None:
    mailbox, runners = mailbox_of(tmp_path)
    assert mailbox.activity().messages == 6
    runners[SUM].messages = 5
    mailbox.end({SUM}, in_order=in_order)
    assert runners[SUM].told == [("leaves", in_order)] and runners[SOURCE].told == []
    assert list(mailbox._runners) == [SOURCE] and mailbox.activity().messages == 8
    mailbox.end(in_order=in_order)
    assert runners[SOURCE].told == [("leaves", in_order)] and mailbox._runners == {}
    assert mailbox.activity().messages == 8
