"""The client of a standing service: submits programs and finds jobs. See docs/operations.md."""

from ekorn.program.running.job_client import JobClient
from ekorn.service.client.service_client import ServiceClient
from ekorn.web.http_client import RefusedRequest, ServerGone

__all__ = ["JobClient", "RefusedRequest", "ServerGone", "ServiceClient"]
