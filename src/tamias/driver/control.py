"""A running job answers other processes of its user on the same machine: who it is, savepoints, stopping, cancelling.

The desk is a Unix socket in a folder that only the user may enter, and whoever comes is asked for the user id by the
kernel. One line of JSON comes in, one goes out; nothing that is read is executed or unpickled.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import logging
import os
import socket
import stat
import struct
import tempfile
import threading
from pathlib import Path
from typing import Any

from tamias.config.environment_variables import RUNTIME_DIR, SESSION_DIR, variable
from tamias.driver.job_handle import JobHandle
from tamias.errors import ConfigurationError, TamiasError
from tamias.functions.job_status import JobStatus

__all__ = ["ControlDesk", "JobGone", "ask", "desks", "runtime_folder"]

_log = logging.getLogger(__name__)
_numbers = itertools.count()

_LONGEST_LINE = 1 << 16
_PATIENCE_S = 10.0  # with somebody who says nothing
_LONGEST_PATH = 107  # bytes that the kernel takes for the address of a socket


_conversations: set[threading.Thread] = set()


@atexit.register
def _let_the_last_answers_out() -> None:
    for thread in list(_conversations):
        thread.join(timeout=2.0)


class JobGone(TamiasError):
    """The job's driver is not there any more."""


def runtime_folder() -> Path:
    """Where the jobs of this user can be found: made if need be, and open to nobody else.

    `TAMIAS_RUNTIME_DIR`, or a folder `tamias` below the user's `XDG_RUNTIME_DIR`, or one in the temporary directory.

    Raises:
        ConfigurationError: Somebody else owns it, or may enter it.
    """
    given, session = variable(RUNTIME_DIR), variable(SESSION_DIR)
    if given:
        folder = Path(given)
    elif session and os.path.isdir(session):
        folder = Path(session) / "tamias"
    else:
        folder = Path(tempfile.gettempdir()) / f"tamias-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise ConfigurationError(
            f"jobs are found in {str(folder)!r}, which must be a folder of this user's that nobody else may enter: "
            "`chmod 700` it, or name another one in TAMIAS_RUNTIME_DIR"
        )
    return folder


class ControlDesk:
    """Answers for one job, from its start to its end."""

    def __init__(self, handle: JobHandle) -> None:
        """Open the desk.

        Raises:
            ConfigurationError: There is no safe place for it.
            OSError: The socket could not be made.
        """
        self._handle = handle
        self.path = runtime_folder() / f"{os.getpid()}-{next(_numbers)}.sock"
        if len(os.fsencode(self.path)) > _LONGEST_PATH:
            raise ConfigurationError(
                f"{str(self.path)!r} is too long for a socket: name a short path in TAMIAS_RUNTIME_DIR"
            )
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(str(self.path))
        self._socket.listen()
        threading.Thread(target=self._serve, name="tamias-control", daemon=True).start()

    def close(self) -> None:
        """Take no more questions. Those that were asked are still answered."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # ends the `accept` that waits
        self._socket.close()
        with contextlib.suppress(OSError):  # what is left of it is cleared away by the next one who asks
            self.path.unlink()
            self.path.parent.rmdir()  # unless other jobs are in it

    def _serve(self) -> None:
        while True:
            try:
                link, _ = self._socket.accept()
            except OSError:
                return  # closed
            thread = threading.Thread(target=self._converse, args=(link,), name="tamias-control-answer", daemon=True)
            _conversations.add(thread)
            thread.start()

    def _converse(self, link: socket.socket) -> None:
        try:
            with link:
                if _peer_uid(link) not in (None, os.getuid()):
                    return
                link.settimeout(_PATIENCE_S)
                answer = self._answered(_read_line(link))
                link.settimeout(_PATIENCE_S)
                link.sendall(json.dumps(answer).encode() + b"\n")
        except (OSError, EOFError) as gone:
            _log.info("somebody who asked job %s something is gone: %s", self._handle.job_name, gone)
        finally:
            _conversations.discard(threading.current_thread())

    def _answered(self, line: bytes) -> dict[str, Any]:
        try:
            return {"answer": self._answer(json.loads(line))}
        except (TamiasError, ValueError, KeyError, TypeError) as error:
            return {"error": str(error) or type(error).__name__}

    def _answer(self, question: dict[str, Any]) -> Any:
        match question:
            case {"ask": "job"}:
                return self._described()
            case {"ask": "cancel"}:
                self._handle.cancel()
                return self._end().name
            case {
                "ask": "savepoint",
                "directory": str() | None as directory,
                "native": bool() as native,
                "then": ("go on" | "stop" | "drain" | "cancel") as then,
            }:
                return self._handle.request_savepoint(directory, native=native, then=then).result()
        raise ValueError(f"not understood: {json.dumps(question)[:200]}")

    def _described(self) -> dict[str, Any]:
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

    def _end(self) -> JobStatus:
        with contextlib.suppress(Exception):  # that it was cancelled, or what it failed with: the status says it
            self._handle.wait()
        return self._handle.status()


# --------------------------------------------------------------------------------------------------- the other side


def desks() -> list[Path]:
    """The desks of this user's jobs; some may be those of drivers that were killed."""
    return sorted(runtime_folder().glob("*.sock"))


def ask(desk: Path, question: dict[str, Any]) -> Any:
    """Ask a job something and wait for the answer, however long it takes.

    Raises:
        JobGone: The job ended, or its driver died, before it answered. What is left of its desk is cleared away.
        TamiasError: It could not do what was asked; with its reason.
    """
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
            link.connect(str(desk))
            link.sendall(json.dumps(question).encode() + b"\n")
            reply = json.loads(_read_line(link))
    except ConnectionRefusedError as error:
        desk.unlink(missing_ok=True)
        raise JobGone("the job's driver was killed") from error
    except (OSError, EOFError) as error:
        raise JobGone("the job's driver ended before it answered; its output says how") from error
    if "error" in reply:
        raise TamiasError(reply["error"])
    return reply["answer"]


def _read_line(link: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        data = link.recv(4096)
        if not data:
            raise EOFError("the line was not finished")
        line += data
        if len(line) > _LONGEST_LINE:
            raise OSError(f"a line of more than {_LONGEST_LINE} bytes")
    return line


def _peer_uid(link: socket.socket) -> int | None:
    """Who is at the other end; None where the kernel does not say, and the folder alone protects the socket."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    credentials = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    uid: int = struct.unpack("3i", credentials)[1]
    return uid
