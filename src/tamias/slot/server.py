"""Serves a slot: the driver and Spark's tasks put requests to it over authenticated connections."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import queue
import threading
from typing import assert_never

from tamias.clock import SystemClock
from tamias.errors import DeploymentError
from tamias.faults import point
from tamias.operators.epoch import Ack
from tamias.slot.deployment_codec import decode_deployment
from tamias.slot.host import SlotHost
from tamias.slot.link import Address, Link
from tamias.slot.listener import Listener
from tamias.slot.messages import (
    ACK,
    FAILED,
    Aborted,
    CloseSubtasks,
    Completed,
    Deploy,
    Discard,
    Done,
    Exit,
    KeepFile,
    Request,
    RunEpoch,
    Subscribe,
)
from tamias.slot.slot_config import SlotConfig
from tamias.slot.slot_events import SlotEvent
from tamias.subtask.wire.frames import Blob
from tamias.types.by_value import dumps

_EPOCHS_BETWEEN_FULL_COLLECTIONS = 512


class SlotServer:
    """The host of one slot's subtasks, and the connections to it."""

    def __init__(self, config: SlotConfig) -> None:
        self._config = config
        self._events: queue.SimpleQueue[SlotEvent] = queue.SimpleQueue()
        self._host = SlotHost(
            config.slot, SystemClock(), self._events.put, os.path.join(config.folder, f"slot-{config.slot}")
        )
        self._turn = threading.Lock()  # one request at a time: user code is never called concurrently
        self._listener = Listener(config.address, config.secret, self._serve_connection, "slot-connection")
        self.ended = threading.Event()
        self._epochs_run = 0

    @property
    def address(self) -> Address:
        """The address on which the slot listens."""
        return self._listener.address

    def start(self) -> None:
        """Serve connections until the slot ends. Each connection has a thread of its own."""
        self._listener.start()

    def stop(self) -> None:
        """Close the subtasks and remove the slot's folder."""
        self.ended.set()
        self._listener.close()
        if not isinstance(self._config.address, tuple):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._config.address)
        if self._turn.acquire(timeout=3.0):  # do not wait for a request that hangs in user code
            self._host.shutdown()

    def _serve_connection(self, link: Link) -> None:
        try:
            while True:
                request: Request = pickle.loads(link.receive())
                if not self._answer(link, request):
                    return
        except (EOFError, OSError):
            pass  # the peer is gone; a task that died in the middle of an epoch leaves the slot dirty
        finally:
            link.close()

    def _answer(self, link: Link, request: Request) -> bool:
        match request:
            case RunEpoch():
                self._run_epoch(link, request)
            case Subscribe():
                link.send(dumps(Done()))
                self._publish_events(link)
            case Exit():
                link.send(dumps(Done()))
                self.ended.set()
                return False
            case Deploy() | KeepFile() | Completed() | Aborted() | CloseSubtasks() | Discard():
                link.send(dumps(Done(self._perform(request))))
            case _:
                assert_never(request)
        return True

    def _perform(
        self, request: Deploy | KeepFile | Completed | Aborted | CloseSubtasks | Discard
    ) -> BaseException | None:
        with self._turn:
            try:
                match request:
                    case Deploy(data, subtasks):
                        gc.unfreeze()
                        self._host.deploy(decode_deployment(data), subtasks)
                        # Restored state lives as long as the attempt: keep the collector from walking it again.
                        gc.collect()
                        gc.freeze()
                    case KeepFile(number, file, part, last, first):
                        self._host.files.receive(number, file, part, last=last, first=first)
                    case Completed(checkpoint_id):
                        self._host.checkpoint_completed(checkpoint_id)
                    case Aborted(checkpoint_id):
                        self._host.checkpoint_aborted(checkpoint_id)
                    case CloseSubtasks():
                        self._host.close_subtasks()
                    case Discard():
                        self._host.discard()
            except Exception as error:  # travels to the driver, which decides what it means
                return _picklable(error)
        return None

    def _run_epoch(self, link: Link, request: RunEpoch) -> None:
        blobs: list[Blob] = []
        while message := link.receive():
            blobs.append(Blob.decode(message))
        task = _EmittedToTask(link)
        with self._turn:
            try:
                self._collect_garbage()
                point("epoch", self._config.slot)
                for item in self._host.run(request.subtask, request.attempt, request.order, blobs, task.send):
                    task.send(item)
            except Exception as error:  # travels to the driver through the task
                if task.gone is not None:  # an error of the connection, though raised below an operator
                    raise task.gone from error
                link.send(FAILED, dumps(_picklable(error)))

    def _collect_garbage(self) -> None:
        """Collect cyclic garbage of the last epochs, and now and then of everything."""
        self._epochs_run += 1
        gc.collect(2 if self._epochs_run % _EPOCHS_BETWEEN_FULL_COLLECTIONS == 0 else 1)

    def _publish_events(self, link: Link) -> None:
        """Send each event as it happens, and a heartbeat when there is none, on a thread beside the user's code."""
        while not self.ended.is_set():
            try:
                message = dumps(self._events.get(timeout=self._config.heartbeat_s))
            except queue.Empty:
                message = b""
            link.send(message)


class TaskGone(EOFError):
    """The task that asked for an epoch no longer takes what the subtask emits."""


class _EmittedToTask:
    """Sends what a subtask emits to the task that asked for the epoch."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.gone: TaskGone | None = None  # set when the connection has failed

    def send(self, item: Blob | Ack) -> None:
        try:
            if isinstance(item, Ack):
                self._link.send(ACK, dumps(item))
            else:
                self._link.send(*item.encode())
        except OSError as error:
            # A subtask's own OSErrors may be about files: remember that this one is not.
            self.gone = TaskGone("the task that asked for the epoch is gone")
            raise self.gone from error


def _picklable(error: BaseException) -> BaseException:
    """Return the error, or an error with its text if it does not survive pickling."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # the user's exception classes may do anything
        return DeploymentError(f"{type(error).__name__}: {error}")
    return error
