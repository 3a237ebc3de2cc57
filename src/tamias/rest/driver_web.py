"""The web server of a driver process: one for all of its jobs, opened by the first job that asks for it."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace

from tamias.config.job_settings import JobSettings
from tamias.config.web_settings import WebSettings
from tamias.dashboard.pages import add_pages
from tamias.driver.control import runtime_folder
from tamias.driver.job_handle import JobHandle
from tamias.rest.changing_api import add_changing_routes
from tamias.rest.driver_api import add_reading_routes
from tamias.rest.known_jobs import KnownJobs
from tamias.rest.operations import Operations
from tamias.web.routes import Routes
from tamias.web.serving import Serving, serve

__all__ = ["WEB", "DriverWeb", "driver_routes"]

_log = logging.getLogger(__name__)

TOKEN_FILE = "web.token"


def driver_routes(known: KnownJobs, *, read_only: bool = False) -> Routes:
    """Return the routes over the jobs of a process."""
    routes = Routes()
    add_reading_routes(routes, known, read_only=read_only)
    add_changing_routes(routes, known, Operations())
    add_pages(routes)
    return routes


class DriverWeb:
    """The web server of one process.

    Attributes:
        jobs: The jobs that it shows.
    """

    def __init__(self) -> None:
        self.jobs = KnownJobs()
        self._lock = threading.Lock()
        self._serving: Serving | None = None

    @property
    def address(self) -> str | None:
        """Where the server listens; None if it is not open."""
        return None if self._serving is None else self._serving.address

    def opened_for(self, settings: JobSettings) -> JobSettings:
        """Open the server if a job asks for it; return the job's settings, with the address of the server.

        Raises:
            ConfigurationError: The address is in use, or the token or the certificate cannot be read.
        """
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
                routes = driver_routes(self.jobs, read_only=settings.read_only)
                self._serving = serve(settings, routes, str(runtime_folder() / TOKEN_FILE))
                where = "" if self._serving.token_file is None else f", token in {self._serving.token_file}"
                _log.info("the web server of this driver listens on %s%s", self._serving.address, where)
            return self._serving

    def show(self, handle: JobHandle, settings: JobSettings) -> None:
        """Show a submitted job from now on, if it asks for it."""
        if settings.web.address is not None and handle.statistics is not None:
            self.jobs.add(handle)

    def close(self) -> None:
        """Close the server, if it is open."""
        with self._lock:
            if self._serving is not None:
                self._serving.server.close()
                self._serving = None


WEB = DriverWeb()
"""The web server of this process."""
