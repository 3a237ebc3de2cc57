"""A service that stands by for others on a shared storage, and runs their jobs while it leads."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode

from ekorn.checkpoint.driver_process import Driver
from ekorn.clock import Clock, SystemClock
from ekorn.config.settings.service_settings import ClusterSettings, ServiceSettings
from ekorn.errors import ConfigurationError
from ekorn.service.api.service_api import service_routes
from ekorn.service.cluster.cluster_files import ClusterFiles
from ekorn.service.cluster.cluster_node import ClusterNode, Office
from ekorn.service.cluster.leadership import Leadership, NotLeader
from ekorn.service.cluster.shared_jobs import SharedJobStore
from ekorn.service.jobs.job_process import drivers_below, end_drivers_below
from ekorn.service.jobs.job_service import JobService
from ekorn.service.jobs.job_store import SUBMISSION, write_private
from ekorn.service.service_folder import ServiceFolder
from ekorn.storage.file_store import FileStore, open_files
from ekorn.storage.locations import join, scheme_of
from ekorn.storage.private_folder import PrivateFolder
from ekorn.web.http_messages import Request, Response
from ekorn.web.routes import Found, Handler, Route, Routes
from ekorn.web.serving import Serving, serve

__all__ = ["ClusterRoutes", "ClusteredService", "add_cluster_route"]

_log = logging.getLogger(__name__)


class ClusteredService:
    """One of several services that runs in this process.

    Args:
        settings: What it runs with; they name a cluster.
        clock: The wall clock.

    Attributes:
        serving: The web server.
        node: The part of this service in the cluster.
        service: The jobs, while this service leads; None while it stands by.

    Raises:
        ConfigurationError: Another service has the folder, drivers of a service without standbys run there, the address
            is in use, or the storage cannot be used.
    """

    def __init__(self, settings: ServiceSettings, clock: Clock | None = None) -> None:
        assert settings.cluster is not None
        self._clock = clock or SystemClock()
        self._folder = ServiceFolder(settings.folder)
        self.service: JobService | None = None
        self._led_routes: Routes | None = None
        try:
            self._refuse_drivers_without_leader()
            self._store = _opened(settings.cluster)
            try:
                self._files = ClusterFiles(self._store)
            except OSError as error:
                raise ConfigurationError(f"high-availability.storageDir cannot be used: {error}") from error
            self._me = Driver.this_process()
            self.serving = self._serve(settings)
            self._settings = replace(settings, web=replace(settings.web, address=self.serving.address))
            # The leader of these drivers was an earlier process of this service and is gone. The next leader starts
            # their jobs again.
            self._end_drivers("left behind")
            self.node = ClusterNode(
                self._files,
                self._me,
                self.serving.address,
                lease_s=settings.cluster.lease_ms / 1000,
                office=Office(self._enter, self._leave),
                clock=self._clock,
            )
        except BaseException:
            self._folder.close()
            raise
        self._folder.announce(self.serving, settings.web.certificate_file)
        self.serving.server.start()
        self.node.start()

    def _serve(self, settings: ServiceSettings) -> Serving:
        if settings.web.token_file is None and settings.web.needs_token:
            write_private(self._folder.token_file, self._files.web_token.encode() + b"\n")
        routes = ClusterRoutes(lambda: self.node, lambda: self._led_routes, settings.bundle_bytes)
        return serve(settings.web, routes, str(self._folder.token_file), host=settings.host, started=False)

    def close(self) -> None:
        """End this service. If it leads, its drivers end, and another service starts their jobs again."""
        self.serving.server.close()
        self.node.close()
        self._folder.close()

    # ----------------------------------------------------------------------------------------- on the node's thread

    def _enter(self, led: Leadership) -> None:
        self._end_drivers("of an earlier term")
        store = SharedJobStore(str(self._folder.path), self._store, self._me.token, led, self._clock)
        service = JobService(self._settings, self._clock, store)
        routes = service_routes(service)
        # Added here too, so that the OpenAPI description of the leader names the route.
        add_cluster_route(routes, lambda: self.node)
        self._led_routes = routes
        self.service = service
        service.start()

    def _leave(self, led: Leadership) -> None:
        self._led_routes = None
        service, self.service = self.service, None
        try:
            if service is not None:
                service.close_and_end_drivers(wait_s=led.lease_s)
        finally:
            self._end_drivers("of a leader that is replaced")

    def _refuse_drivers_without_leader(self) -> None:
        """Refuse a folder with jobs of a service without standbys: no leader would start them again."""
        found = [each for each in drivers_below(self._folder.path / "jobs") if each.submission.name == SUBMISSION]
        if found:
            raise ConfigurationError(
                f"job {found[0].submission.parent.name} runs in {str(self._folder.path)!r}, and was started by a "
                "service without standbys: stop such jobs first, or set another ekorn.service.dir"
            )

    def _end_drivers(self, which: str) -> None:
        ended = end_drivers_below(self._folder.path / "jobs")
        if ended:
            _log.warning("%d drivers %s were ended", ended, which)


def _opened(cluster: ClusterSettings) -> FileStore:
    address = join(cluster.directory, cluster.cluster_id)
    store = open_files(address)
    if not scheme_of(store.address):  # the settings of jobs and the token must be readable by this user only
        os.makedirs(os.path.dirname(store.url), exist_ok=True)
        with PrivateFolder.opened(store.url):
            pass
    return store


_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_RETRY_AFTER_S = 1


def add_cluster_route(routes: Routes, node: Callable[[], ClusterNode]) -> None:
    """Add the route that shows the services of a cluster, whether this one leads or stands by."""
    summary = "The services of the cluster, and the leader among them"
    routes.add("GET", "/service/cluster", lambda request: node().describe(), summary)


class ClusterRoutes(Routes):
    """Routes that depend on which service leads.

    A request that changes something is answered only after the storage has confirmed that this service still leads. A
    service that was stopped for a while and wakes up in the middle of a request says that it does not lead.

    Args:
        node: This service; set before the first request.
        led_routes: Returns the routes of the service while it leads; None while it does not.
        most_body_bytes: The longest body of a request.
    """

    def __init__(
        self, node: Callable[[], ClusterNode], led_routes: Callable[[], Routes | None], most_body_bytes: int
    ) -> None:
        super().__init__()
        self._node = node
        self._led_routes = led_routes
        add_cluster_route(self, node)
        self.add("GET", "/", self._elsewhere, "The page of the leader", is_public=True)
        for method in _METHODS:
            many = {"to_file": True, "most_body_bytes": most_body_bytes} if method == "POST" else {}
            self.add(method, "/*", self._elsewhere, "Forwarded to the leader", reads_only=True, **many)

    def find(self, method: str, parts: list[str]) -> Found:
        led, routes = self._node().leadership, self._led_routes()
        if led is None or routes is None or parts == ["service", "cluster"]:
            return super().find(method, parts)
        found = routes.find(method, parts)
        return Found(replace(found.route, handler=self._led(led, found.route)), found.parameters)

    def __iter__(self) -> Iterator[Route]:
        return iter(self._led_routes() or super().__iter__())

    def _led(self, led: Leadership, route: Route) -> Handler:
        """Return a handler that answers only if this service still leads when the answer is ready."""

        def handler(request: Request) -> Response | dict[str, Any] | list[Any]:
            try:
                answer = route.handler(request)
                if not route.reads_only:
                    led.confirm()
            except NotLeader:
                return self._elsewhere(request)
            return answer if led.is_valid else self._elsewhere(request)

        return handler

    def _elsewhere(self, request: Request) -> Response:
        """Answer with the address of the leader, to which the client sends the same request."""
        node = self._node()
        leader = node.leader
        if leader is None or leader.token == node.token:
            reason = "this service is not the leader, and no leader is known at the moment; try again"
            return Response({"errors": [reason]}, 503, headers={"Retry-After": str(_RETRY_AFTER_S)})
        query = f"?{urlencode(request.query, doseq=True)}" if request.query else ""
        reason = f"this service is not the leader; the leader is at {leader.address}"
        where = f"{leader.address}{quote(request.path, safe='/')}{query}"
        return Response({"errors": [reason]}, 307, headers={"Location": where})
