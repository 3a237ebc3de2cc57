"""Lets other processes of the same user on the same machine control a running job: `ekorn list`, `stop`, `cancel`.

A job listens on a Unix socket in a folder that only the user may enter, and asks the kernel for the user id of every
peer. A request is one line of JSON, and so is the answer. Nothing that is read is executed or unpickled.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import logging
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ekorn.driver.job_handle import JobHandle
from ekorn.errors import ConfigurationError, EkornError, UnsafeFolderError
from ekorn.functions.results.job_status import JobStatus
from ekorn.links.listener import Acceptor
from ekorn.storage.private_folder import PrivateFolder
from ekorn.web.peers import peer_uid

__all__ = ["ControlDesk", "JobGone", "ask", "desks", "peer_uid", "runtime_folder"]

_log = logging.getLogger(__name__)
_numbers = itertools.count()

_LONGEST_LINE = 1 << 16
_REQUEST_S = 10.0
_LAST_ANSWERS_S = 2.0
_LONGEST_PATH = 107  # bytes: the kernel's limit for the address of a socket


_conversations: set[threading.Thread] = set()


@atexit.register
def _finish_conversations() -> None:
    """Send the answers to requests that arrived before the driver ended."""
    deadline = time.monotonic() + _LAST_ANSWERS_S  # for all: silent peers must not hold up the end
    for thread in list(_conversations):
        thread.join(deadline - time.monotonic())  # a time below 0 is no time


class JobGone(EkornError):
    """The driver of the job no longer runs."""


def runtime_folder() -> Path:
    """Return the folder with the sockets of this user's jobs; create it, closed to other users, if need be.

    The folder is `EKORN_RUNTIME_DIR`, else a folder `ekorn` below `XDG_RUNTIME_DIR`, else one in the temporary
    directory.

    Raises:
        ConfigurationError: Another user owns the folder, or may enter it.
    """
    given, session = os.environ.get("EKORN_RUNTIME_DIR"), os.environ.get("XDG_RUNTIME_DIR")
    if given:
        folder = Path(given)
    elif session and os.path.isdir(session):
        folder = Path(session) / "ekorn"
    else:
        folder = Path(tempfile.gettempdir()) / f"ekorn-{os.getuid()}"
    try:
        with PrivateFolder.opened(str(folder)):
            return folder
    except UnsafeFolderError as error:
        raise ConfigurationError(
            f"there is no safe place for the sockets of jobs (EKORN_RUNTIME_DIR): {error}"
        ) from error


# --------------------------------------------------------------------------------------------------- the job's side


class ControlDesk:
    """Answers requests about one job, from its start to its end.

    Attributes:
        path: The socket.
    """

    def __init__(
        self,
        handle: JobHandle,
        uid_of: Callable[[socket.socket], int | None] = peer_uid,
        request_s: float = _REQUEST_S,
    ) -> None:
        """Open the socket.

        Args:
            handle: The job.
            uid_of: Returns the user id of a peer.
            request_s: How long a peer may take to send its request, and to read the answer.

        Raises:
            ConfigurationError: There is no safe place for the socket.
            OSError: The socket could not be created.
        """
        self._handle = handle
        self._uid_of = uid_of
        self._request_s = request_s
        self.path = runtime_folder() / f"{os.getpid()}-{next(_numbers)}.sock"
        if len(os.fsencode(self.path)) > _LONGEST_PATH:
            raise ConfigurationError(
                f"{str(self.path)!r} is too long for a socket: name a short path in EKORN_RUNTIME_DIR"
            )
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.bind(str(self.path))
        sock.listen()
        self._acceptor = Acceptor(sock, self._converse, "ekorn-control")
        self._acceptor.start()

    def close(self) -> None:
        """Accept no more requests. Requests that were accepted are still answered."""
        self._acceptor.close()
        with contextlib.suppress(OSError):  # a socket that stays behind is removed by the next `ask`
            self.path.unlink()
            self.path.parent.rmdir()  # fails if other jobs have their sockets there

    def _converse(self, link: socket.socket) -> None:
        try:
            with link:
                if self._uid_of(link) not in (None, os.getuid()):
                    return
                _conversations.add(threading.current_thread())
                line = _read_line(link, within_s=self._request_s)
                self._acceptor.newcomers.remove(link)
                answer = self._answer_line(line)
                link.settimeout(self._request_s)
                link.sendall(json.dumps(answer).encode() + b"\n")
        except (OSError, EOFError) as gone:
            _log.info("a process that sent a request to job %s is gone: %s", self._handle.job_name, gone)
        finally:
            _conversations.discard(threading.current_thread())

    def _answer_line(self, line: bytes) -> dict[str, Any]:
        try:
            return {"answer": self._answer(json.loads(line))}
        except (EkornError, ValueError, KeyError, TypeError) as error:
            return {"error": str(error) or type(error).__name__}

    def _answer(self, question: dict[str, Any]) -> Any:
        match question:
            case {"ask": "job"}:
                return self._description()
            case {"ask": "cancel"}:
                self._handle.cancel()
                return self._wait_for_end().name
            case {
                "ask": "savepoint",
                "directory": str() | None as directory,
                "native": bool() as native,
                "then": ("go on" | "stop" | "drain" | "cancel") as then,
            }:
                return self._handle.request_savepoint(directory, native=native, then=then).result()
            case {"ask": "rescale", "parallelism": int() as parallelism, "directory": str() | None as directory}:
                return self._handle.request_rescale(parallelism, directory).result()
        raise ValueError(f"not understood: {json.dumps(question)[:200]}")

    def _description(self) -> dict[str, Any]:
        progress = self._handle.progress()
        return {
            "id": str(self._handle.job_id),
            "name": self._handle.job_name,
            "status": progress.status.name,
            "pid": os.getpid(),
            "records": progress.records_read,
            "checkpoints": progress.checkpoints_completed,
            "restarts": progress.restarts,
            "last_checkpoint": progress.last_checkpoint_path,
            "last_savepoint": progress.last_savepoint_path,
        }

    def _wait_for_end(self) -> JobStatus:
        with contextlib.suppress(Exception):  # the status says whether the job was cancelled or failed
            self._handle.wait()
        return self._handle.status()


# --------------------------------------------------------------------------------------------------- the other side


def desks() -> list[Path]:
    """Return the sockets of this user's jobs. Drivers that were killed may have left some of them."""
    return sorted(runtime_folder().glob("*.sock"))


def ask(desk: Path, question: dict[str, Any], within_s: float | None = None) -> Any:
    """Send a request to a job and wait for the answer.

    Args:
        desk: The socket of the job.
        question: The request.
        within_s: How long the answer may take; None for any time.

    Raises:
        TimeoutError: The job has not answered in time.
        JobGone: The job ended, or its driver died, before it answered. The socket of a killed driver is removed.
        EkornError: The job could not do what was asked.
    """
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
            link.settimeout(within_s)
            link.connect(str(desk))
            link.sendall(json.dumps(question).encode() + b"\n")
            reply = json.loads(_read_line(link, within_s))
    except TimeoutError:
        raise
    except ConnectionRefusedError as error:
        desk.unlink(missing_ok=True)
        raise JobGone("the job's driver was killed") from error
    except (OSError, EOFError) as error:
        raise JobGone("the job's driver ended before it answered; its output says how") from error
    if "error" in reply:
        raise EkornError(reply["error"])
    return reply["answer"]


def _read_line(link: socket.socket, within_s: float | None = None) -> bytes:
    """Read to the end of the line. `within_s` limits the time for the whole line, however slowly it arrives."""
    deadline = None if within_s is None else time.monotonic() + within_s
    line = b""
    while not line.endswith(b"\n"):
        if deadline is not None:
            link.settimeout(max(deadline - time.monotonic(), 0.001))
        data = link.recv(4096)
        if not data:
            raise EOFError("the line was not finished")
        line += data
        if len(line) > _LONGEST_LINE:
            raise OSError(f"a line of more than {_LONGEST_LINE} bytes")
    return line
