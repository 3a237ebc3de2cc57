"""The socket of a running job, for other processes of the same user: `ekorn list`, `stop` and `cancel` use it.

The socket is a Unix socket in a folder that only the user may enter, and the kernel reports the user id of every peer.
The server behind it answers the REST API for this one job. The socket is closed before the end of the job is published.
Requests that were accepted earlier are still answered; a request with `wait=true` is answered when its operation is
done.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import logging
import os
import socket
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from ekorn.driver.job_handle import JobHandle
from ekorn.driver.runtime_folder import runtime_folder
from ekorn.errors import ConfigurationError, EkornError
from ekorn.links.listener import MAX_NEWCOMERS
from ekorn.rest.changing_api import add_changing_routes
from ekorn.rest.driver_api import add_reading_routes
from ekorn.rest.known_jobs import KnownJobs
from ekorn.rest.operations import Operations
from ekorn.web.gate import Gate
from ekorn.web.http_client import Answered, ServerGone, WebClient
from ekorn.web.http_server import ServerLimits, WebServer, unix_socket
from ekorn.web.peers import peer_uid
from ekorn.web.routes import Routes

__all__ = ["JobGone", "JobSocket", "JobSocketClient", "job_sockets", "open_job_socket"]

_log = logging.getLogger(__name__)
_numbers = itertools.count()

_LAST_ANSWERS_S = 2.0
_LIMITS = ServerLimits(most_newcomers=MAX_NEWCOMERS)
_LONGEST_PATH = 107  # bytes: the kernel's limit for the address of a socket


# --------------------------------------------------------------------------------------------------- the job's side


def open_job_socket(handle: JobHandle) -> None:
    """Open the socket through which other processes of the user reach a job, if the settings allow that."""
    if not handle.takes_requests_from_outside:
        return
    try:
        opened = JobSocket(handle)
    except (EkornError, OSError) as error:  # the job still runs; only other processes cannot reach it
        _log.warning("job %s cannot be reached by commands such as `ekorn list`: %s", handle.job_name, error)
    else:
        handle.at_end(lambda status, has_savepoint: opened.close())


class JobSocket:
    """Answers the REST API over one job at a Unix socket, from now to `close`.

    Args:
        handle: The job; its loop is assembled.
        limits: How long peers may take, and how many may wait.
        uid_of: Returns the user id of a peer.

    Attributes:
        path: The socket.

    Raises:
        ConfigurationError: There is no safe place for the socket.
        OSError: The socket could not be created.
    """

    def __init__(
        self,
        handle: JobHandle,
        limits: ServerLimits = _LIMITS,
        uid_of: Callable[[socket.socket], int | None] = peer_uid,
    ) -> None:
        self.path = runtime_folder() / f"{os.getpid()}-{next(_numbers)}.sock"
        if len(os.fsencode(self.path)) > _LONGEST_PATH:
            raise ConfigurationError(
                f"{str(self.path)!r} is too long for a socket: name a short path in EKORN_RUNTIME_DIR"
            )
        known = KnownJobs()
        known.add(handle)
        routes = Routes()
        add_reading_routes(routes, known, read_only=False)
        add_changing_routes(routes, known, Operations())
        self._server = WebServer(unix_socket(str(self.path)), routes, Gate(), limits=limits, uid_of=uid_of)
        self._server.start()
        _servers.add(self._server)

    def close(self) -> None:
        """Accept no more requests. Requests that were accepted are still answered."""
        self._server.stop_accepting()
        with contextlib.suppress(OSError):  # a client removes a socket that is left behind
            self.path.unlink()
            self.path.parent.rmdir()  # fails if other jobs have their sockets there


_servers: weakref.WeakSet[WebServer] = weakref.WeakSet()


@atexit.register
def _finish_conversations() -> None:
    """Send the answers to requests that arrived before the driver ended."""
    deadline = time.monotonic() + _LAST_ANSWERS_S  # shared by all peers: silent ones must not delay the end
    for server in list(_servers):
        server.stop_accepting()
        server.wait_until_idle(deadline - time.monotonic())


# --------------------------------------------------------------------------------------------------- the other side


class JobGone(ServerGone):
    """The driver of the job no longer runs."""


def job_sockets() -> list[Path]:
    """Return the sockets of this user's jobs. Drivers that were killed may have left some of them."""
    return sorted(runtime_folder().glob("*.sock"))


class JobSocketClient(WebClient):
    """Sends requests to the socket of a job.

    Args:
        path: The socket.
        timeout_s: How long the job may take to answer; None for any time.
    """

    def __init__(self, path: Path, timeout_s: float | None = None) -> None:
        super().__init__(f"unix:{path}", timeout_s=timeout_s)
        self._socket_path = path

    def ask(self, method: str, path: str, body: Any = None, *, file: BinaryIO | None = None) -> Answered:
        """Send a request and return the answer, whatever its status.

        Raises:
            TimeoutError: The job has not answered in time.
            JobGone: The job ended, or its driver died, before it answered. The socket of a killed driver is removed.
        """
        try:
            return super().ask(method, path, body, file=file)
        except ServerGone as gone:
            match gone.__cause__:
                case TimeoutError():
                    raise TimeoutError(str(gone)) from gone
                case ConnectionRefusedError():
                    self._socket_path.unlink(missing_ok=True)
                    raise JobGone("the job's driver was killed") from gone
                case _:
                    raise JobGone("the job's driver ended before it answered; see its output") from gone
