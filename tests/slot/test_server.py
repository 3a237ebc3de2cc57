"""The server of a slot: what the driver asks for reaches the subtasks, and what they say reaches the driver."""

from __future__ import annotations

import functools
import io
import os
import pickle
import sys
import tarfile
import threading
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ekorn.common import WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.functions import MapFunction
from ekorn.errors import DamagedBlob, DeploymentError, SlotLostError
from ekorn.functions.state.checkpointed import CheckpointListener
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import CachedFile
from ekorn.links.link import Link, connect
from ekorn.operators.epoch import Ack, EpochOrder
from ekorn.operators.mark import MarkAck, MarkOrder
from ekorn.slot.garbage import SlotGarbage
from ekorn.slot.slot_server import SlotServer, _encoded_event
from ekorn.slot_protocol.deployment_codec import (
    call_in_slots,
    decode_deployment,
    do_not_call_in_slots,
    encode_deployment,
)
from ekorn.slot_protocol.diagnostics import SamplingPlan
from ekorn.slot_protocol.messages import (
    Aborted,
    CloseSubtasks,
    Completed,
    Deploy,
    Discard,
    DumpThreads,
    Exit,
    KeepFile,
    OrderEpoch,
    PauseSources,
    ReadLog,
    ReadVitals,
    Request,
    SampleStacks,
    Subscribe,
)
from ekorn.slot_protocol.slot_config import SlotConfig
from ekorn.slot_protocol.slot_events import EpochAcknowledged, SlotActivity, SnapshotWritten
from ekorn.slot_protocol.task_messages import ACK, FAILED, RunEpoch
from ekorn.types.by_value import dumps
from tests.slot.small_job import SOURCE, SUM, deployment, graph, summing

SECRET = b"s" * 32
heard: list[Any] = []  # what `Listening` was told, in the order it happened


class Listening(MapFunction, CheckpointListener):
    """Notes what the runtime tells it; fails where the deployment asks for it."""

    def __init__(self, failing: str = "") -> None:
        self._failing = failing

    def map(self, value: int) -> int:
        if self._failing == "map":
            raise UnpicklableError("no map")
        return value

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        heard.append(("completed", checkpoint_id))

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        heard.append(("aborted", checkpoint_id))

    def close(self) -> None:
        heard.append("closed")
        if self._failing == "close":
            raise ValueError("no close")


class UnpicklableError(Exception):
    """An exception of a user that cannot be made again from its arguments."""

    def __init__(self, first: str, second: str = "") -> None:
        super().__init__()
        self.first, self.lock = first, threading.Lock()

    def __str__(self) -> str:
        return self.first


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SlotServer]:
    heard.clear()
    started = SlotServer(SlotConfig(0, str(tmp_path / "socket"), SECRET, str(tmp_path / "f"), [], heartbeat_s=0.02))
    started.start()
    yield started
    if (tmp_path / "socket").exists():  # a second stop() waits for the turn that the first one keeps
        started.stop()


@pytest.fixture
def control(server: SlotServer) -> Link:
    return connect(server.address, SECRET)


def ask(link: Link, request: Any) -> BaseException | None:
    """Put a request of the driver; return the error of the answer."""
    link.send(dumps(request))
    error: BaseException | None = pickle.loads(link.receive()).error
    return error


def deploy(link: Link, draw: Any = summing, subtasks: list[SubtaskId] | None = None) -> BaseException | None:
    of = deployment(graph(draw, checkpoints=True))
    return ask(link, Deploy(encode_deployment(of), [SOURCE, SUM] if subtasks is None else subtasks))


def run(link: Link, subtask: SubtaskId, order: EpochOrder, blobs: list[bytes], *, repeatable: bool) -> list[bytes]:
    """Ask for an epoch; return the messages of the answer."""
    link.send(dumps(RunEpoch(subtask, 0, order, repeatable)))
    for blob in blobs:
        link.send(blob)
    link.send(b"")
    found = [link.receive()]
    while found[-1][:1] not in (ACK, FAILED):
        found.append(link.receive())
    return found


def listening(failing: str = "") -> Any:
    return lambda env: env.from_collection([1, 2, 3]).map(Listening(failing)).print()


@pytest.mark.parametrize("repeatable", [False, True])
def test_what_a_subtask_emits_is_sent_on_and_reaches_the_next_subtask(
    server: SlotServer, control: Link, repeatable: bool
) -> None:
    assert deploy(control) is None
    task = connect(server.address, SECRET)
    *blobs, ack = run(task, SOURCE, EpochOrder(0), [], repeatable=repeatable)
    assert ack[:1] == ACK
    *_, summed = run(task, SUM, EpochOrder(0), blobs, repeatable=repeatable)
    answer: Ack = pickle.loads(summed[1:])
    assert sorted(answer.lines) == ["1", "2", "4"]


@pytest.mark.parametrize("repeatable", [False, True])
@pytest.mark.parametrize("message", [b"B\0\0", b"X" * 100])
def test_input_that_is_no_blob_is_refused_with_the_reason_and_the_task_may_ask_again(
    server: SlotServer, control: Link, repeatable: bool, message: bytes
) -> None:
    assert deploy(control) is None
    task = connect(server.address, SECRET)
    *blobs, _ = run(task, SOURCE, EpochOrder(0), [], repeatable=repeatable)
    (answer,) = run(task, SUM, EpochOrder(0), [message, *blobs], repeatable=repeatable)
    assert answer[:1] == FAILED
    error = pickle.loads(answer[1:])
    assert isinstance(error, DamagedBlob) and f"a message of {len(message)} bytes" in str(error)
    *_, summed = run(task, SUM, EpochOrder(0), blobs, repeatable=repeatable)
    assert summed[:1] == ACK, "the epoch has not begun, and all of its input was taken off the connection"


@pytest.mark.parametrize("repeatable", [False, True])
def test_an_error_of_the_user_that_cannot_be_pickled_arrives_as_its_text(
    server: SlotServer, control: Link, repeatable: bool
) -> None:
    assert deploy(control, listening("map"), [SOURCE]) is None
    task = connect(server.address, SECRET)
    (answer,) = run(task, SOURCE, EpochOrder(0), [], repeatable=repeatable)
    error = pickle.loads(answer[1:])
    assert "no map" in str(error)
    (again,) = run(task, SOURCE, EpochOrder(1), [], repeatable=repeatable)
    assert isinstance(pickle.loads(again[1:]), SlotLostError)


def test_a_subscriber_hears_of_snapshots_and_of_what_the_slot_is_doing(server: SlotServer, control: Link) -> None:
    deploy(control)
    driver = connect(server.address, SECRET)
    assert ask(driver, Subscribe()) is None
    assert pickle.loads(driver.receive()) == SlotActivity(-1, frozenset(), 0, False)
    task = connect(server.address, SECRET)
    told: list[Any] = []

    def hear_of(activity: SlotActivity) -> None:
        while not told or told[-1] != activity:
            told.append(pickle.loads(driver.receive()))

    blobs, messages = [], 0
    for subtask, order, repeatable, answered in (
        (SOURCE, EpochOrder(3, checkpoint_id=1), False, {SOURCE}),
        (SUM, EpochOrder(3), True, {SOURCE, SUM}),
        (SOURCE, EpochOrder(4), True, {SOURCE}),
        (SUM, EpochOrder(4), False, {SOURCE, SUM}),
    ):
        received = blobs if subtask == SUM else []
        *blobs, ack = run(task, subtask, order, received, repeatable=repeatable)
        assert ack[:1] == ACK
        messages += 1 + len(received) + len(blobs) + 1  # the request and its blobs; the blobs of the answer and its end
        hear_of(SlotActivity(order.number, frozenset(answered), messages, False))
    while not any(isinstance(event, SnapshotWritten) for event in told):
        told.append(pickle.loads(driver.receive()))  # it is written beside the epochs
    assert [event.checkpoint_id for event in told if isinstance(event, SnapshotWritten)] == [1]


def test_the_end_of_a_checkpoint_reaches_the_functions(control: Link) -> None:
    deploy(control, listening(), [SOURCE])
    for request in (Completed(1), Aborted(2), Completed(3)):
        assert ask(control, request) is None
    assert heard == [("completed", 1), ("aborted", 2), ("completed", 3)]


def test_the_end_of_a_job_reports_what_close_raises_and_a_failed_attempt_does_not(control: Link) -> None:
    deploy(control, listening("close"), [SOURCE])
    error = ask(control, CloseSubtasks())
    assert "no close" in str(error)
    deploy(control, listening("close"), [SOURCE])
    assert ask(control, Discard()) is None
    assert heard == ["closed", "closed"]
    task_error = ask(control, CloseSubtasks())  # nothing is open any more
    assert task_error is None
    assert heard == ["closed", "closed"]


def in_seconds(env: StreamExecutionEnvironment) -> None:
    seconds = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: 1_700_000_000)
    env.from_collection([1, 2, 3]).assign_timestamps_and_watermarks(seconds).print()


def test_the_hints_of_a_job_come_with_the_answer_that_ends_it(server: SlotServer, control: Link) -> None:
    assert deploy(control, in_seconds, [SOURCE]) is None
    run(connect(server.address, SECRET), SOURCE, EpochOrder(0), [], repeatable=False)
    found = []
    for request in (Discard(frozenset()), Discard(), Discard()):
        control.send(dumps(request))
        found.append([hint.about for hint in pickle.loads(control.receive()).hints])
    assert found == [[], ["unit"], []]


def megabytes(value: int) -> Iterator[tuple[int, bytes]]:
    """Emit far more than the buffers of a socket take."""
    for number in range(64):
        yield number, b"x" * (1 << 20)
        heard.append(number)


def wide(env: Any) -> Any:
    return env.from_collection([1]).flat_map(megabytes).key_by(len).print()


@pytest.mark.parametrize("request_of_the_driver", ["discard", "deploy"])
def test_a_subtask_that_waits_for_its_task_does_not_hold_up_the_driver(
    server: SlotServer, control: Link, request_of_the_driver: str
) -> None:
    assert deploy(control, wide) is None
    driver = connect(server.address, SECRET)
    ask(driver, Subscribe())
    task = connect(server.address, SECRET)
    task.send(dumps(RunEpoch(SOURCE, 0, EpochOrder(0))))
    task.send(b"")  # and then the task takes nothing of what the subtask sends
    while not heard:
        driver.receive()
    while pickle.loads(driver.receive()).in_user_code:
        pass  # from its first record to the blob that the task does not take, the subtask is in user code
    assert ask(control, Discard()) is None if request_of_the_driver == "discard" else deploy(control, wide) is None
    with pytest.raises(EOFError):
        while True:
            task.receive()
    assert deploy(control) is None
    *_, ack = run(connect(server.address, SECRET), SOURCE, EpochOrder(0), [], repeatable=False)
    assert ack[:1] == ACK


class WaitsInUserCode(MapFunction):
    """Waits for the test, which runs in the same process."""

    begun, may_go_on = threading.Event(), threading.Event()

    def map(self, value: int) -> int:
        type(self).begun.set()
        assert type(self).may_go_on.wait(30)
        return value


@pytest.mark.parametrize("repeatable", [False, True])
def test_heartbeats_tell_that_a_subtask_is_in_user_code(server: SlotServer, control: Link, repeatable: bool) -> None:
    begun, may_go_on = WaitsInUserCode.begun, WaitsInUserCode.may_go_on
    begun.clear()
    may_go_on.clear()
    waits = functools.partial(lambda function, env: env.from_collection([1]).map(function).print(), WaitsInUserCode())
    assert deploy(control, waits, [SOURCE]) is None
    driver, task = connect(server.address, SECRET), connect(server.address, SECRET)
    ask(driver, Subscribe())
    asking = threading.Thread(target=run, args=(task, SOURCE, EpochOrder(0), []), kwargs={"repeatable": repeatable})
    asking.start()
    assert begun.wait(30)
    driver.settimeout(30)
    while not pickle.loads(driver.receive()).in_user_code:
        pass  # was on its way before
    may_go_on.set()
    while pickle.loads(driver.receive()).in_user_code:
        pass
    asking.join(30)


class NotedGarbage(SlotGarbage):
    def __init__(self) -> None:
        self.noted: list[str] = []

    def deploying(self) -> None:
        self.noted.append("deploying")

    def deployed(self) -> None:
        self.noted.append("deployed")

    def epoch_ended(self) -> None:
        self.noted.append("epoch")


def test_garbage_is_collected_around_a_deployment_and_with_each_epoch(tmp_path: Path) -> None:
    garbage = NotedGarbage()
    started = SlotServer(SlotConfig(0, str(tmp_path / "socket"), SECRET, str(tmp_path / "f"), []), garbage)
    started.start()
    control = connect(started.address, SECRET)
    assert deploy(control) is None
    assert garbage.noted == ["deploying", "deployed"]
    run(control, SOURCE, EpochOrder(0), [], repeatable=False)
    run(control, SOURCE, EpochOrder(1), [], repeatable=True)
    run(control, SOURCE, EpochOrder(1), [], repeatable=True)  # the answer that was kept
    assert garbage.noted[2:] == ["epoch", "epoch"]
    started.stop()


def test_heartbeats_come_one_by_one(tmp_path: Path) -> None:
    started = SlotServer(SlotConfig(0, str(tmp_path / "socket"), SECRET, str(tmp_path / "f"), [], heartbeat_s=0.2))
    started.start()
    driver, heartbeats, end = connect(started.address, SECRET), 0, time.monotonic() + 1.0
    ask(driver, Subscribe())
    while time.monotonic() < end:
        driver.receive()
        heartbeats += 1
    started.stop()
    assert 1 <= heartbeats <= 6


def test_a_file_is_kept_part_by_part(control: Link, tmp_path: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        entry = tarfile.TarInfo("content")
        entry.size = 5
        archive.addfile(entry, io.BytesIO(b"words"))
    data, file = packed.getvalue(), CachedFile("words", "/elsewhere/words.txt")
    for _attempt in range(2):  # the second begins anew
        assert ask(control, KeepFile(0, file, data[:100], last=False, first=True)) is None
        assert ask(control, KeepFile(0, file, data[100:], last=True)) is None
    (copy,) = (tmp_path / "f").rglob("words.txt")
    assert copy.read_bytes() == b"words"


def test_a_slot_that_is_told_to_exit_says_so_and_ends(server: SlotServer, control: Link) -> None:
    assert not server.ended.is_set()
    assert ask(control, Exit()) is None
    assert server.ended.wait(30)
    with pytest.raises(EOFError):
        control.receive()


def test_a_stopped_slot_leaves_no_folder_no_socket_and_no_port(server: SlotServer, control: Link) -> None:
    deploy(control, listening(), [SOURCE])
    address = str(server.address)
    assert os.path.exists(address)
    server.stop()
    assert not os.path.exists(address)
    assert heard == ["closed"]
    with pytest.raises(OSError):
        connect(server.address, SECRET)


def test_a_stopped_slot_no_longer_answers_on_its_port(tmp_path: Path) -> None:
    started = SlotServer(SlotConfig(0, ("127.0.0.1", 0), SECRET, str(tmp_path), []))
    started.start()
    assert deploy(connect(started.address, SECRET), listening(), [SOURCE]) is None
    started.stop()
    with pytest.raises(ConnectionRefusedError):
        connect(started.address, SECRET)


# ------------------------------------------------------------------------------------------ how a deployment travels


def prepare() -> None:
    heard.append("prepared")


def test_a_slot_prepares_before_it_reads_user_code_as_long_as_this_is_asked_for() -> None:
    heard.clear()
    call_in_slots(prepare)
    data = encode_deployment(deployment(graph(summing)))
    do_not_call_in_slots(prepare)
    assert heard == []
    assert decode_deployment(data).job_id == "0" * 32
    assert heard == ["prepared"]
    decode_deployment(encode_deployment(deployment(graph(summing))))
    assert heard == ["prepared"]


def test_classes_of_the_main_program_are_found_by_name_in_the_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    driver_main, slot_main = types.ModuleType("__main__"), types.ModuleType("__main__")
    exec("class Point:\n    x = 7", driver_main.__dict__)
    driver_main.__dict__["Stranger"] = Path  # of another module: found there by its own name
    driver_main.__dict__["Stuck"] = type("Stuck", (), {"__module__": "__main__", "lock": threading.Lock()})
    exec("class Last:\n    pass", driver_main.__dict__)
    monkeypatch.setitem(sys.modules, "__main__", driver_main)
    data = encode_deployment(deployment(graph(summing)))
    monkeypatch.setitem(sys.modules, "__main__", slot_main)
    decode_deployment(data)
    assert slot_main.__dict__["Point"].x == 7
    assert {name for name in vars(slot_main) if not name.startswith("__")} == {"Point", "Last"}


def test_a_job_that_cannot_be_pickled_is_refused_with_the_reason() -> None:
    lock = threading.Lock()
    with pytest.raises(DeploymentError, match=r"cannot be sent to its slots: TypeError: .*lock"):
        encode_deployment(deployment(graph(summing), local_copies=lock))


def answered(link: Link, request: Request) -> Any:
    link.send(dumps(request))
    return pickle.loads(link.receive())


def test_a_slot_tells_its_threads_its_log_and_what_it_uses(server: SlotServer, control: Link) -> None:
    assert "MainThread" in str(answered(control, DumpThreads()))
    logs = answered(control, ReadLog())
    assert (logs.log.text, logs.output.text) == ("", "")
    assert answered(control, ReadVitals()).pid == os.getpid()
    (sample,) = answered(control, SampleStacks(SamplingPlan(samples=1, delay_ms=0, depth=10)))
    assert (sample.subtask, sample.times) == (None, 1)
    assert ask(control, Exit()) is None


class Mailbox:
    """Notes what the mailbox of a slot is asked for."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    def order(self, order: object) -> None:
        self.asked.append(order)

    def pause_sources(self) -> None:
        self.asked.append("paused")

    def checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.asked.append(("aborted", checkpoint_id))

    def stop(self) -> None:
        pass


def test_orders_and_pauses_of_another_attempt_are_passed_over(server: SlotServer, control: Link) -> None:
    assert deploy(control) is None
    mailbox = Mailbox()
    server._mailbox = mailbox  # type: ignore[assignment]
    for attempt in (1, 0, -1):
        assert ask(control, OrderEpoch(attempt, MarkOrder(7))) is None
        assert ask(control, PauseSources(attempt)) is None
    assert mailbox.asked == [MarkOrder(7), "paused"]


def test_an_aborted_checkpoint_ends_what_is_recorded_for_it(server: SlotServer, control: Link) -> None:
    assert deploy(control) is None
    mailbox = Mailbox()
    server._runner = mailbox  # type: ignore[assignment]
    assert ask(control, Aborted(3)) is None
    assert mailbox.asked == [("aborted", 3)]


def test_only_an_acknowledgement_that_cannot_be_pickled_becomes_a_failure() -> None:
    odd: Any = threading.Lock()  # of the user
    ack = MarkAck(vertex=2, subtask=1, epoch=0, lines=odd)
    failed = pickle.loads(_encoded_event(EpochAcknowledged(4, ack)))
    assert (failed.attempt, failed.subtask) == (4, SubtaskId(2, 1))
    assert "an accumulator or metric of" in str(pickle.loads(failed.pickled_error))
    with pytest.raises(TypeError, match="cannot pickle"):
        _encoded_event(odd)
