"""Writes docs/reference/rest.md from the OpenAPI descriptions of the servers: `python -m tests.manual.rest_page`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from ekorn.rest.driver_web import driver_routes
from ekorn.rest.known_jobs import KnownJobs
from ekorn.rest.openapi import description
from ekorn.rest.operations import Operations
from ekorn.service.api.service_api import service_routes
from ekorn.service.cluster.cluster_node import ClusterNode
from ekorn.service.cluster.clustered_service import ClusterRoutes
from ekorn.service.jobs.job_service import JobService
from tests.manual.blocks import DOCS

PAGE = DOCS / "reference" / "rest.md"
HEAD = """# REST

<!-- Written from the OpenAPI descriptions by: python -m tests.manual.rest_page -->

Every path of the two servers. Each server also describes its paths at `/openapi.json`. Paths and responses are
Flink's where Flink has the path. Every request needs the token, as
`Authorization: Bearer ...` ([the REST API](../operations.md#the-rest-api)). A refused request returns
`{"errors": ["..."]}`. Long-running operations return a `request-id`; query the path with that id for their status.
"""
STANDBY = "With `high-availability.type: storage`. The leader also answers `/service/cluster`, besides the paths above."


def page() -> str:
    """Return the text of docs/reference/rest.md."""
    of_driver = description(driver_routes(KnownJobs(), Operations()))
    stand_in = SimpleNamespace(
        settings=SimpleNamespace(web=SimpleNamespace(read_only=False), bundle_bytes=0)
    )  # routes are only listed
    of_service = description(service_routes(cast(JobService, stand_in)))
    of_standby = description(ClusterRoutes(lambda: cast(ClusterNode, stand_in), lambda: None, 0))
    return (
        HEAD
        + _section("A driver", "On if `ekorn.web` is set: the jobs of one process.", of_driver)
        + _section("The service", "`ekorn service start`: all jobs of the service.", of_service)
        + _section("A service that stands by", STANDBY, of_standby)
    )


def _section(title: str, sentence: str, described: dict[str, Any]) -> str:
    rows = [
        f"| `{method.upper()}` | `{path}` | {operation['summary'] or ''} |\n"
        for path, methods in sorted(described["paths"].items())
        for method, operation in methods.items()
    ]
    return f"\n## {title}\n\n{sentence}\n\n| method | path | answers |\n|---|---|---|\n{''.join(rows)}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
