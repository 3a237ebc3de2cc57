"""The process of the service: opened once per folder, answers until it is asked to end."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
from dataclasses import replace

from ekorn.config.configuration import Configuration
from ekorn.config.settings.service_settings import ServiceSettings, service_settings
from ekorn.errors import EkornError
from ekorn.service.api.service_api import service_routes
from ekorn.service.cluster.clustered_service import ClusteredService
from ekorn.service.jobs.job_service import JobService
from ekorn.service.service_folder import ServiceFolder
from ekorn.web.serving import Serving, serve

__all__ = ["READY_FD", "StandingService", "main", "open_service"]

READY_FD = "EKORN_READY_FD"

_log = logging.getLogger(__name__)


class StandingService:
    """A service that runs in this process.

    Args:
        settings: What it runs with.

    Raises:
        ConfigurationError: Another service has the folder, or the address is in use.
    """

    def __init__(self, settings: ServiceSettings) -> None:
        self._folder = ServiceFolder(settings.folder)
        try:
            self.service = JobService(settings)
            self.serving = self._serve(settings)
        except BaseException:
            self._folder.close()
            raise
        self.service.start()
        self._folder.announce(self.serving, settings.web.certificate_file)

    def _serve(self, settings: ServiceSettings) -> Serving:
        routes = service_routes(self.service)
        serving = serve(settings.web, routes, str(self._folder.token_file), host=settings.host)
        self.service.settings = replace(settings, web=replace(settings.web, address=serving.address))
        return serving

    def close(self) -> None:
        """End the service. The drivers of its jobs keep running."""
        self.serving.server.close()
        self.service.close()
        self._folder.close()


def open_service(settings: ServiceSettings) -> StandingService | ClusteredService:
    """Open a service of its own, or one among several that stand by for each other.

    Raises:
        ConfigurationError: It cannot be opened.
    """
    return StandingService(settings) if settings.cluster is None else ClusteredService(settings)


def main() -> int:
    """Run the service that standard input describes until SIGTERM or SIGINT; report on a pipe that it answers."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    try:
        running = open_service(service_settings(Configuration.from_dict(json.loads(sys.stdin.read()))))
    except (EkornError, OSError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    _log.info("the service listens on %s", running.serving.address)
    ready = os.environ.pop(READY_FD, None)
    if ready is not None:
        os.write(int(ready), b"ready")
        os.close(int(ready))
    ended.wait()
    running.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
