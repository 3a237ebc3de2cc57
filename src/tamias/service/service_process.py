"""The process of the service: opened once per folder, answers until it is asked to end."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import IO

from tamias.config.configuration import Configuration
from tamias.config.service_settings import ServiceSettings, service_settings
from tamias.errors import ConfigurationError, TamiasError
from tamias.service.job_service import JobService
from tamias.service.job_store import write_private
from tamias.service.service_api import service_routes
from tamias.storage.private_folder import PrivateFolder
from tamias.web.serving import Serving, serve

__all__ = ["LOCK_FILE", "RUNNING_FILE", "TOKEN_FILE", "StandingService", "is_locked", "main"]

RUNNING_FILE = "service.json"
TOKEN_FILE = "token"
LOCK_FILE = "lock"
READY_FD = "TAMIAS_READY_FD"
_TRIES = 20
_TRY_AGAIN_S = 0.05

_log = logging.getLogger(__name__)


class StandingService:
    """A service that runs in this process.

    Args:
        settings: What it runs with.

    Raises:
        ConfigurationError: Another service has the folder, or the address is in use.
    """

    def __init__(self, settings: ServiceSettings) -> None:
        with PrivateFolder.opened(settings.folder):
            pass
        self._folder = Path(settings.folder)
        self._lock = _locked(self._folder)
        try:
            self.service = JobService(settings)
            self.serving = self._serve(settings)
        except BaseException:
            self._lock.close()
            raise
        self.service.start()
        running = {"pid": os.getpid(), "address": self.serving.address, "token_file": self.serving.token_file}
        running["certificate_file"] = settings.web.certificate_file
        write_private(self._folder / RUNNING_FILE, json.dumps(running).encode())

    def _serve(self, settings: ServiceSettings) -> Serving:
        serving = serve(settings.web, service_routes(self.service), str(self._folder / TOKEN_FILE))
        self.service.settings = replace(settings, web=replace(settings.web, address=serving.address))
        return serving

    def close(self) -> None:
        """End the service. The drivers of its jobs live on."""
        self.serving.server.close()
        self.service.close()
        (self._folder / RUNNING_FILE).unlink(missing_ok=True)
        self._lock.close()


def _locked(folder: Path) -> IO[bytes]:
    lock = open(os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "rb+")  # noqa: SIM115
    for _ in range(_TRIES):  # a command that looks for the service holds the lock for a moment
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except OSError:
            time.sleep(_TRY_AGAIN_S)
    lock.close()
    raise ConfigurationError(f"a service runs in {str(folder)!r} already (tamias.service.dir)")


def is_locked(folder: Path) -> bool:
    """Return whether a service runs in a folder. The system takes the lock away from one that is killed.

    Raises:
        FileNotFoundError: None ever ran there.
    """
    with open(folder / LOCK_FILE, "rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def main() -> int:
    """Run the service that standard input describes, until SIGTERM or SIGINT; say on a pipe that it answers."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    try:
        running = StandingService(service_settings(Configuration.from_dict(json.loads(sys.stdin.read()))))
    except (TamiasError, OSError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    _log.info("the service listens on %s, jobs in %s", running.serving.address, running.service.store.folder)
    ready = os.environ.pop(READY_FD, None)
    if ready is not None:
        os.write(int(ready), b"ready")
        os.close(int(ready))
    ended.wait()
    running.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
