"""The slot process: hosts subtasks, serves the driver and Spark's tasks over authenticated connections.

It lives exactly as long as the driver wants it to: its standard input is a pipe that only the driver holds (on a
cluster, a connection to the driver), and when that ends, however the driver ended, so does the slot.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import pickle
import queue
import shutil
import socket
import sys
import threading
from dataclasses import dataclass, replace
from typing import assert_never

from tamias.clock import SystemClock
from tamias.errors import DeploymentError
from tamias.faults import point
from tamias.operators.epoch import Ack
from tamias.slot.deployment import SlotEvent
from tamias.slot.deployment_pickle import load_deployment
from tamias.slot.host import SlotHost
from tamias.slot.link import Address, Link, accept, connect, listen
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
from tamias.subtask.wire.frames import Blob
from tamias.types.by_value import dumps

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SlotConfig:
    """What a slot process is told at its start, over its standard input: never on a command line."""

    slot: int
    address: Address
    secret: bytes
    folder: str
    python_path: list[str]
    heartbeat_s: float = 10.0
    log_file: str | None = None
    driver: Address | None = None  # on a cluster: where to register, and whose end is ours


@dataclass(frozen=True)
class Registration:
    """What a slot on a cluster says of itself when it calls the driver."""

    slot: int
    address: Address
    host: str
    pid: int


class SlotServer:
    """One slot: a host, and the connections to it."""

    def __init__(self, config: SlotConfig) -> None:
        self._config = config
        self._events: queue.SimpleQueue[SlotEvent] = queue.SimpleQueue()
        self._host = SlotHost(
            config.slot, SystemClock(), self._events.put, os.path.join(config.folder, f"slot-{config.slot}")
        )
        self._turn = threading.Lock()  # one request at a time: user code is never called concurrently
        self._listener = listen(config.address)
        self.ended = threading.Event()
        self._runs = 0

    @property
    def address(self) -> Address:
        """Where it listens."""
        name = self._listener.getsockname()
        return name if isinstance(name, str) else (name[0], name[1])

    def serve(self) -> None:
        """Accept connections until the slot ends; each has a thread of its own."""
        while not self.ended.is_set():
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._converse, args=(sock,), daemon=True).start()

    def stop(self) -> None:
        """End: close subtasks, remove the folder."""
        self.ended.set()
        self._listener.close()
        if not isinstance(self._config.address, tuple):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._config.address)
        if self._turn.acquire(timeout=3.0):  # a request that hangs in user code is left behind
            self._host.shutdown()

    def _converse(self, sock: socket.socket) -> None:
        link = accept(sock, self._config.secret)
        if link is None:
            return
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
                self._run(link, request)
            case Subscribe():
                link.send(dumps(Done()))
                self._publish(link)
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
                        self._host.deploy(load_deployment(data), subtasks)
                        # Restored state lives as long as the attempt: keep the collector from walking it again.
                        gc.collect()
                        gc.freeze()
                    case KeepFile(number, file, part, last):
                        self._host.files.receive(number, file, part, last=last)
                    case Completed(checkpoint_id):
                        self._host.checkpoint_completed(checkpoint_id)
                    case Aborted(checkpoint_id):
                        self._host.checkpoint_aborted(checkpoint_id)
                    case CloseSubtasks():
                        self._host.close_subtasks()
                    case Discard():
                        self._host.discard()
            except Exception as error:  # travels to the driver, which knows what it means
                return _portable(error)
        return None

    def _run(self, link: Link, request: RunEpoch) -> None:
        blobs: list[Blob] = []
        while message := link.receive():
            blobs.append(Blob.decode(message))
        with self._turn:
            try:
                self._collect()
                point("epoch", self._config.slot)
                for item in self._host.run((request.vertex, request.subtask), request.attempt, request.order, blobs):
                    _hand_over(link, item)
            except PeerGone:
                raise  # an error of the connection, not one of the subtask's, which may well be about files
            except Exception as error:  # travels to the driver through the task
                link.send(FAILED, dumps(_portable(error)))

    def _collect(self) -> None:
        """Look for cyclic garbage among what the last epochs made, and now and then among everything."""
        self._runs += 1
        gc.collect(2 if self._runs % 512 == 0 else 1)

    def _publish(self, link: Link) -> None:
        """Report what happens, and at least a heartbeat, on a thread that runs beside the user's code."""
        while not self.ended.is_set():
            try:
                message = dumps(self._events.get(timeout=self._config.heartbeat_s))
            except queue.Empty:
                message = b""
            link.send(message)


class PeerGone(EOFError):
    """Nobody takes what a subtask put out."""


def _hand_over(link: Link, item: Blob | Ack) -> None:
    """Send what leaves a subtask to the task that asked for it."""
    try:
        if isinstance(item, Ack):
            link.send(ACK, dumps(item))
        else:
            link.send(*item.encode())
    except OSError as error:
        raise PeerGone("the task that wanted it is gone") from error


def _portable(error: BaseException) -> BaseException:
    """The error, or words in its place if it does not survive pickling."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # the user's exception classes may do anything
        return DeploymentError(f"{type(error).__name__}: {error}")
    return error


def main() -> None:
    """Entry point of the process: configuration from standard input, then serve until the driver is gone."""
    pipe = sys.stdin.buffer
    length = int.from_bytes(pipe.read(8), "little")
    config: SlotConfig = pickle.loads(pipe.read(length))
    sys.path[:] = config.python_path
    logging.basicConfig(
        filename=config.log_file, level=logging.INFO, format=f"%(asctime)s slot {config.slot} %(levelname)s %(message)s"
    )
    gc.disable()  # records come and go by the ten thousand: garbage is looked for between epochs (`_collect`)
    sys.stdin = open(os.devnull)  # noqa: SIM115 - user code that asks for input finds none, for good
    lifeline = connect(config.driver, config.secret) if config.driver is not None else None
    if lifeline is not None:
        config = replace(config, address=(lifeline.local_host(), 0))  # the way the driver can reach us
    server = SlotServer(config)
    threading.Thread(target=server.serve, name="serve", daemon=True).start()
    if lifeline is not None:
        lifeline.send(dumps(Registration(config.slot, server.address, socket.gethostname(), os.getpid())))
    else:
        _print_ready(server.address)

    def watch() -> None:
        with contextlib.suppress(OSError, EOFError):
            if lifeline is not None:
                lifeline.receive()
            else:
                pipe.read()
        server.ended.set()

    threading.Thread(target=watch, name="driver-watch", daemon=True).start()
    server.ended.wait()
    server.stop()
    shutil.rmtree(config.folder, ignore_errors=True) if lifeline is not None else _remove_if_empty(config.folder)
    os._exit(0)  # user code may have left threads behind that would keep the process alive


def _remove_if_empty(folder: str) -> None:
    """The slots of a local job share a folder: the last one to end finds it empty, should the driver be gone."""
    with contextlib.suppress(OSError):
        os.rmdir(folder)


def _print_ready(address: Address) -> None:
    """Tell the parent where the slot listens, on the descriptor it gave us."""
    fd = int(os.environ.pop("TAMIAS_READY_FD"))
    with os.fdopen(fd, "wb") as ready:
        ready.write(pickle.dumps(address))
