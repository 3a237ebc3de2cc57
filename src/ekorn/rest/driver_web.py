"""The web server of a driver process: one for all of its jobs, opened by the first job that asks for it."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from dataclasses import replace
from typing import Any

from ekorn.config.settings.job_settings import JobSettings
from ekorn.config.settings.web_settings import WebSettings
from ekorn.dashboard.pages import add_pages
from ekorn.driver.job_handle import JobHandle
from ekorn.driver.runtime_folder import runtime_folder
from ekorn.errors import ConfigurationError
from ekorn.rest.application_answers import add_application_routes
from ekorn.rest.archive import last_answers
from ekorn.rest.changing_api import add_changing_routes
from ekorn.rest.driver_api import add_reading_routes
from ekorn.rest.job_answers import exceptions, jobs_overview
from ekorn.rest.known_jobs import KnownJobs
from ekorn.rest.openapi import add_description
from ekorn.rest.operations import Operations
from ekorn.web.gate import Gate
from ekorn.web.http_server import WebServer, unix_socket
from ekorn.web.routes import Routes
from ekorn.web.serving import Serving, serve

__all__ = ["WEB", "DriverWeb", "driver_routes"]

_log = logging.getLogger(__name__)

TOKEN_FILE = "web.token"


def driver_routes(known: KnownJobs, operations: Operations, *, read_only: bool = False) -> Routes:
    """Return the routes over the jobs of a process."""
    routes = Routes()
    add_reading_routes(routes, known, read_only=read_only)
    add_changing_routes(routes, known, operations)
    add_application_routes(
        routes, lambda: jobs_overview(known)["jobs"], lambda job_id: exceptions(known.find(job_id), None)
    )
    add_description(routes)
    add_pages(routes)
    return routes


class DriverWeb:
    """The web server of one process.

    Attributes:
        jobs: The jobs that it shows.
    """

    def __init__(self) -> None:
        self.jobs = KnownJobs()
        self._operations = Operations()
        self._lock = threading.Lock()
        self._serving: Serving | None = None
        self._at_socket: WebServer | None = None
        self._socket = ""

    @property
    def address(self) -> str | None:
        """Where the server listens; None if it is not open."""
        return None if self._serving is None else self._serving.address

    def opened_for(self, settings: JobSettings) -> JobSettings:
        """Open the server if a job asks for it; return the job's settings, with the address of the server.

        Raises:
            ConfigurationError: The address is in use, or the token or the certificate cannot be read.
        """
        if settings.web.socket is not None:
            self.open_socket(settings.web.socket)
        if settings.web.port is None:
            return settings
        return replace(settings, web=replace(settings.web, address=self.open(settings.web).address))

    def open(self, settings: WebSettings) -> Serving:
        """Open the server, unless it is open already: then the settings of the first job count.

        Raises:
            ConfigurationError: The address is in use, or the token or the certificate cannot be read.
        """
        with self._lock:
            if self._serving is None:
                routes = driver_routes(self.jobs, self._operations, read_only=settings.read_only)
                self._serving = serve(settings, routes, str(runtime_folder() / TOKEN_FILE))
                where = "" if self._serving.token_file is None else f", token in {self._serving.token_file}"
                _log.info("the web server of this driver listens on %s%s", self._serving.address, where)
            return self._serving

    def show(self, handle: JobHandle, settings: JobSettings) -> None:
        """Show a submitted job from now on, if it asks for it."""
        is_shown = settings.web.address is not None or settings.web.socket is not None
        if is_shown and handle.view.statistics is not None:
            self.jobs.add(handle)

    def open_socket(self, path: str) -> None:
        """Answer this user's requests at a Unix socket, unless that is done already.

        Raises:
            ConfigurationError: The socket cannot be made.
        """
        with self._lock:
            if self._at_socket is not None:
                return
            try:
                # The last job whose socket was there may have removed the folder.
                os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
                sock = unix_socket(path)
            except OSError as error:
                raise ConfigurationError(f"ekorn.web.socket: {path!r} cannot be used: {error}") from error
            self._at_socket = WebServer(sock, driver_routes(self.jobs, self._operations), Gate())
            self._socket = path
            self._at_socket.start()

    def last_answers(self) -> dict[str, Any]:
        """Return the answers about the jobs, by path, for clients that ask when this process has ended."""
        return last_answers(driver_routes(self.jobs, self._operations), self.jobs, self._operations)

    def close(self) -> None:
        """Close the servers, if they are open."""
        with self._lock:
            if self._at_socket is not None:
                self._at_socket.close()
                self._at_socket = None
                with contextlib.suppress(OSError):
                    os.unlink(self._socket)
            if self._serving is not None:
                self._serving.server.close()
                self._serving = None


WEB = DriverWeb()
"""The web server of this process."""
