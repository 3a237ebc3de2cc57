"""The routes of a service that stands by for others: all of the service while it leads, else the way to the leader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode

from ekorn.service.cluster.cluster_node import ClusterNode
from ekorn.service.cluster.leadership import Leadership, NotLeader
from ekorn.web.http_messages import Request, Response
from ekorn.web.routes import Found, Handler, Route, Routes

__all__ = ["ClusterRoutes", "add_cluster_route"]

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_RETRY_AFTER_S = 1


def add_cluster_route(routes: Routes, node: Callable[[], ClusterNode]) -> None:
    """Add the route that shows the services of a cluster, whether this one leads or stands by."""
    summary = "The services that stand by for each other, and who leads"
    routes.add("GET", "/service/cluster", lambda request: node().describe(), summary)


class ClusterRoutes(Routes):
    """Routes that depend on who leads.

    A request that changes something is answered when the storage has confirmed that this service still led. A service
    that was stopped for a while and wakes up in the middle of a request says that it does not lead.

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
            self.add(method, "/*", self._elsewhere, "Whatever the leader answers", reads_only=True, **many)

    def find(self, method: str, parts: list[str]) -> Found:
        led, routes = self._node().leadership, self._led_routes()
        if led is None or routes is None or parts == ["service", "cluster"]:
            return super().find(method, parts)
        found = routes.find(method, parts)
        return Found(replace(found.route, handler=self._led(led, found.route)), found.parameters)

    def __iter__(self) -> Iterator[Route]:
        return iter(self._led_routes() or super().__iter__())

    def _led(self, led: Leadership, route: Route) -> Handler:
        """Return a handler that answers only if this service led when the answer was ready."""

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
        """Name the leader. A client asks it the same."""
        node = self._node()
        leader = node.leader
        if leader is None or leader.token == node.token:
            reason = "this service is not the leader, and no leader is known at the moment; ask again"
            return Response({"errors": [reason]}, 503, headers={"Retry-After": str(_RETRY_AFTER_S)})
        query = f"?{urlencode(request.query, doseq=True)}" if request.query else ""
        reason = f"this service is not the leader; the leader is at {leader.address}"
        where = f"{leader.address}{quote(request.path, safe='/')}{query}"
        return Response({"errors": [reason]}, 307, headers={"Location": where})
