"""The writer of snapshots: what is written, where, in which order, and what the driver hears of it."""

from __future__ import annotations

import queue
import re
import threading
from pathlib import Path
from typing import Any

import pytest

from ekorn.clock import ManualClock
from ekorn.config.settings.checkpoint_settings import LocalCopySettings
from ekorn.errors import UserFunctionError
from ekorn.graph.addresses import SubtaskId
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.epoch import SavepointOrder
from ekorn.slot.state.local_copies import LocalCopies
from ekorn.slot.state.snapshot_writer import SnapshotWriter
from ekorn.slot_protocol.deployment import Deployment
from ekorn.slot_protocol.slot_events import SnapshotNotWritten, SnapshotWritten
from ekorn.state.canonical_format import PAYLOAD_BYTES
from ekorn.state.keyed_backend import SnapshotTarget
from ekorn.state.snapshots import OperatorSnapshot, StateFile, SubtaskSnapshot
from ekorn.subtask.capture import CapturedSubtask, Declined
from tests.slot.small_job import deployment, graph, summing

GRAPH = graph(summing)


class Captured(CapturedSubtask):
    """The state of a subtask of the small job: payloads, written to new files one after another."""

    def __init__(
        self, checkpoint_id: int, *payloads: bytes, savepoint: SavepointOrder | None = None, shared: bool = False
    ) -> None:
        environment = SubtaskEnvironment(
            job_id="0" * 32,
            graph=GRAPH,
            vertex=GRAPH.vertices[1],
            index=0,
            attempt=0,
            clock=ManualClock(),
            metrics={},
            cached_file=str,
        )
        super().__init__(environment, checkpoint_id, (), False, 0.0, savepoint)
        object.__setattr__(self, "payloads", payloads)
        object.__setattr__(self, "is_shared", shared)
        object.__setattr__(self, "targets", [])

    def write(self, target: SnapshotTarget) -> SubtaskSnapshot:
        parts: Any = self
        parts.targets.append(target)
        name = target.shared if parts.is_shared else target.exclusive
        files = [target.write(name("state"), payload) for payload in parts.payloads]
        operators = tuple(OperatorSnapshot("a" * 32, None, "count", operator_state=file) for file in files)
        return SubtaskSnapshot(1, 0, operators, bytes_written=target.bytes_written)


class Waiting(Captured):
    """A snapshot that is being written until the test lets it go on."""

    def write(self, target: SnapshotTarget) -> SubtaskSnapshot:
        begun.set()
        assert may_go_on.wait(30)
        return super().write(target)


class Failing(Captured):
    def write(self, target: SnapshotTarget) -> SubtaskSnapshot:
        raise OSError("the disk is full")


begun, may_go_on = threading.Event(), threading.Event()


class Slot:
    """A writer, and what it reports."""

    def __init__(self) -> None:
        begun.clear()
        may_go_on.clear()
        self.events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.writer = SnapshotWriter(self.events.put)

    def begin(self, attempt: int = 0, copies: LocalCopies | None = None, **settings: Any) -> Deployment:
        of = deployment(GRAPH, attempt, **settings)
        self.writer.begin(of, copies)
        return of

    def next(self) -> Any:
        return self.events.get(timeout=30)

    def files_of(self, captured: Captured) -> list[StateFile]:
        self.writer.add(captured)
        written = self.next()
        assert isinstance(written, SnapshotWritten), written
        return [file for operator in written.snapshot.operators if (file := operator.operator_state) is not None]


def test_a_snapshot_is_written_beside_the_epochs_and_reported_with_its_attempt(tmp_path: Path) -> None:
    slot = Slot()
    slot.begin(3, checkpoint_directory=str(tmp_path), inline_threshold_bytes=0)
    slot.writer.add(Waiting(7, b"abc", b"defgh"))
    assert begun.wait(30)
    assert slot.events.empty()
    may_go_on.set()
    written = slot.next()
    assert (written.checkpoint_id, written.attempt, written.snapshot.bytes_written) == (7, 3, 8)
    slot.writer.stop()


def test_where_snapshots_are_synchronous_they_are_written_before_the_call_returns() -> None:
    slot = Slot()
    slot.begin(asynchronous=False)
    slot.writer.add(Captured(7, b"abc"))
    assert slot.events.get_nowait().checkpoint_id == 7
    slot.writer.stop()


def test_snapshots_of_an_earlier_attempt_that_wait_are_not_written() -> None:
    slot = Slot()
    slot.begin(0)
    slot.writer.add(Waiting(1, b"being written"))
    slot.writer.add(Captured(2, b"waits"))
    assert begun.wait(30)
    slot.begin(1)
    slot.writer.add(Captured(3, b"new"))
    may_go_on.set()
    assert [(event.checkpoint_id, event.attempt) for event in (slot.next(), slot.next())] == [(1, 0), (3, 1)]
    slot.writer.stop()
    assert slot.events.empty()


def test_a_writer_that_is_stopped_finishes_what_it_writes_and_nothing_else() -> None:
    slot = Slot()
    slot.begin()
    slot.writer.add(Waiting(1, b"being written"))
    slot.writer.add(Captured(2, b"waits"))
    assert begun.wait(30)
    release = threading.Timer(0.2, may_go_on.set)
    release.start()
    slot.writer.stop()
    assert slot.events.get_nowait().checkpoint_id == 1
    assert slot.events.empty()


@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_snapshot_that_cannot_be_written_is_reported_with_the_reason(asynchronous: bool) -> None:
    slot = Slot()
    slot.begin(2, asynchronous=asynchronous)
    failing = Failing(5)
    slot.writer.add(failing)
    why = f"{failing.environment.name}: OSError: the disk is full"
    assert slot.next() == SnapshotNotWritten(5, 2, SubtaskId(1, 0), why)
    slot.writer.add(Captured(6, b"the next one"))
    assert slot.next().checkpoint_id == 6
    slot.writer.stop()


def test_a_snapshot_that_the_user_s_code_declines_is_reported_with_its_error() -> None:
    slot = Slot()
    slot.begin(2)
    error = UserFunctionError("count", None, 0, None, "", "ValueError", "no snapshot")
    slot.writer.decline(SubtaskId(1, 0), Declined(5, error))
    assert slot.next() == SnapshotNotWritten(5, 2, SubtaskId(1, 0), str(error), error)
    slot.writer.stop()


# --------------------------------------------------------------------------------------------------- where files go


@pytest.mark.parametrize(("shared", "directory"), [(False, "chk-7"), (True, "shared")])
def test_the_files_of_a_checkpoint_have_names_that_only_this_attempt_uses(
    tmp_path: Path, shared: bool, directory: str
) -> None:
    slot = Slot()
    slot.begin(3, term=2, checkpoint_directory=str(tmp_path), inline_threshold_bytes=4)
    small, large = slot.files_of(Captured(7, b"abc", b"abcd", shared=shared))
    assert (small.path, small.inline) == (None, b"abc")
    assert large.path is not None and re.fullmatch(rf"{directory}/7-v1-s0-a2\.3-[0-9a-f]{{16}}", large.path)
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()] == [large.path]
    slot.writer.stop()


@pytest.mark.parametrize("kind", ["checkpoint", "savepoint"])
def test_files_are_compressed_and_hashed_if_the_job_asks_for_it(tmp_path: Path, kind: str) -> None:
    order = SavepointOrder(str(tmp_path / "savepoint")) if kind == "savepoint" else None
    for compressed, hashed in ((False, False), (True, False), (False, True)):
        slot = Slot()
        slot.begin(
            checkpoint_directory=str(tmp_path / "job"),
            inline_threshold_bytes=0,
            compression=compressed,
            hashed_files=hashed,
        )
        (file,) = slot.files_of(Captured(7, b"x" * 1000, savepoint=order))
        assert (file.raw_size, file.size < 1000, file.sha256 is not None) == (
            1000 if compressed else None,
            compressed,
            hashed,
        )
        slot.writer.stop()


def test_the_files_of_a_savepoint_lie_together_in_its_directory(tmp_path: Path) -> None:
    slot = Slot()
    slot.begin(checkpoint_directory=str(tmp_path / "job"), inline_threshold_bytes=4)
    captured = Captured(7, b"abc", b"abcd", savepoint=SavepointOrder(str(tmp_path / "savepoint")), shared=True)
    small, large = slot.files_of(captured)
    assert small.inline == b"abc"
    assert large.path is not None and re.fullmatch(r"v1-s0-[0-9a-f]{16}", large.path)
    assert [path.name for path in (tmp_path / "savepoint").iterdir()] == [large.path]
    assert not (tmp_path / "job" / "shared").exists()
    slot.writer.stop()


def test_without_a_directory_state_travels_in_the_event_up_to_a_limit() -> None:
    slot = Slot()
    slot.begin(max_state_bytes=10)
    (file,) = slot.files_of(Captured(7, b"x" * 10))
    assert (file.path, file.inline) == (None, b"x" * 10)
    slot.writer.add(Captured(8, b"x" * 11))
    refused = slot.next()
    assert refused.checkpoint_id == 8
    assert "a state of 11 bytes is too large for checkpoints in the driver's memory (at most 10)" in refused.why
    slot.writer.stop()


def test_without_a_directory_an_acknowledgement_has_a_limit_of_its_own() -> None:
    slot = Slot()
    slot.begin(max_state_bytes=10, acknowledged_bytes=15)
    assert [file.inline for file in slot.files_of(Captured(7, b"x" * 10, b"y" * 5))] == [b"x" * 10, b"y" * 5]
    slot.writer.add(Captured(8, b"x" * 10, b"y" * 6))
    refused = slot.next()
    assert refused.checkpoint_id == 8
    assert "has at least 16 bytes of state, which is more than the frame size (at most 15)" in refused.why
    assert "or raise pekko.framesize" in refused.why
    slot.writer.stop()


def test_without_a_directory_for_checkpoints_the_state_of_a_savepoint_is_in_its_metadata(tmp_path: Path) -> None:
    slot = Slot()
    slot.begin(max_state_bytes=10)
    small, large = slot.files_of(Captured(7, b"x" * 10, b"x" * 11, savepoint=SavepointOrder(str(tmp_path))))
    assert (small.path, small.inline) == (None, b"x" * 10)
    assert large.path is not None and (tmp_path / large.path).exists()
    slot.writer.stop()


@pytest.mark.parametrize(
    ("settings", "with_savepoint", "payload_bytes"),
    [
        ({"checkpoint_directory": "job"}, False, PAYLOAD_BYTES),
        ({"checkpoint_directory": "job"}, True, PAYLOAD_BYTES),
        ({"checkpoint_directory": "job", "inline_threshold_bytes": PAYLOAD_BYTES + 5}, True, PAYLOAD_BYTES + 5),
        ({"max_state_bytes": 10}, False, 11),
        ({"max_state_bytes": PAYLOAD_BYTES + 5}, True, PAYLOAD_BYTES + 6),
    ],
)
def test_a_payload_is_cut_where_it_could_not_be_inline(
    tmp_path: Path, settings: dict[str, Any], with_savepoint: bool, payload_bytes: int
) -> None:
    slot = Slot()
    if "checkpoint_directory" in settings:
        settings = settings | {"checkpoint_directory": str(tmp_path / "job")}
    slot.begin(**settings)
    captured = Captured(7, savepoint=SavepointOrder(str(tmp_path / "savepoint")) if with_savepoint else None)
    slot.files_of(captured)
    targets: Any = captured
    assert [target.payload_bytes for target in targets.targets] == [payload_bytes]
    slot.writer.stop()


@pytest.mark.parametrize("with_savepoint", [False, True])
def test_copies_are_made_of_checkpoints_and_not_of_savepoints(tmp_path: Path, with_savepoint: bool) -> None:
    slot = Slot()
    settings = LocalCopySettings(write=True, read=True, directories=(str(tmp_path / "local"),))
    (tmp_path / "local").mkdir()
    copies = LocalCopies(settings, "0" * 32, 0)
    slot.begin(0, copies, checkpoint_directory=str(tmp_path / "job"), inline_threshold_bytes=0)
    order = SavepointOrder(str(tmp_path / "savepoint")) if with_savepoint else None
    (file,) = slot.files_of(Captured(7, b"abc", savepoint=order))
    copies.completed(7)  # deletes the copies to which no snapshot of the checkpoint refers
    found = copies.find(file)
    assert (found is None) is with_savepoint
    slot.writer.stop()
