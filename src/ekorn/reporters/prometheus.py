"""Serves metrics for Prometheus to scrape, on a port of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from ekorn.config.settings.web_settings import WebSettings
from ekorn.errors import ConfigurationError
from ekorn.metrics.reporter import Sample
from ekorn.reporters.prometheus_text import CONTENT_TYPE, prometheus_text
from ekorn.web.http_messages import Request, Response
from ekorn.web.routes import Routes
from ekorn.web.serving import Serving, serve

__all__ = ["DEFAULT_PORTS", "PrometheusServer"]

DEFAULT_PORTS = (9249,)


class PrometheusServer:
    """Answers `/metrics` with the current metrics.

    A request needs the token of the web server (`authorization` with `credentials_file` in Prometheus' configuration).
    The server listens on the same address as the web server, and uses its certificate.

    Args:
        ports: The ports to try; the first free one is used.
        settings: The settings of the web server.
        token_file: The file with the token if the settings name none.
        read: Returns the metrics.
    """

    def __init__(
        self, ports: Sequence[int], settings: WebSettings, token_file: str, read: Callable[[], Iterable[Sample]]
    ) -> None:
        def metrics(request: Request) -> Response:
            return Response(prometheus_text(read()).encode(), content_type=CONTENT_TYPE)

        routes = Routes()
        routes.add("GET", "/metrics", metrics, "The metrics of all jobs")
        self._serving = _first_free(ports, settings, routes, token_file)

    @property
    def address(self) -> str:
        """The address that Prometheus scrapes."""
        return f"{self._serving.address}/metrics"

    def report(self, samples: Sequence[Sample]) -> None:
        """Do nothing: Prometheus asks for the metrics."""

    def close(self) -> None:
        """Close the port."""
        self._serving.server.close()


def _first_free(ports: Sequence[int], settings: WebSettings, routes: Routes, token_file: str) -> Serving:
    for port in ports[:-1]:
        try:
            return serve(replace(settings, port=port, read_only=True), routes, token_file)
        except ConfigurationError as error:
            if not isinstance(error.__cause__, OSError):
                raise
    return serve(replace(settings, port=ports[-1], read_only=True), routes, token_file)
