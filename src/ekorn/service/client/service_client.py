"""`ServiceClient`: submits programs to a service, and finds its jobs."""

from __future__ import annotations

import io
import json
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from ekorn.config import environment_variables as variables
from ekorn.config.configuration import Configuration
from ekorn.config.settings.service_settings import service_folder
from ekorn.config.starting_configuration import file_configuration
from ekorn.errors import ConfigurationError
from ekorn.program.running.job_client import JobClient
from ekorn.service.client.remote_job import RemoteJob
from ekorn.service.jobs.bundles import make_bundle
from ekorn.service.service_folder import RUNNING_FILE, is_locked
from ekorn.web.http_client import WebClient
from ekorn.web.token_file import read_token

__all__ = ["ServiceClient"]


class ServiceClient:
    """A client of a standing service.

    Args:
        address: Where the service listens; None for `EKORN_SERVICE_ADDRESS`, or the user's own service here.
            `host:port` means HTTPS, except for a loopback address without a certificate file.
        token_file: The file with its token; None for `EKORN_SERVICE_TOKEN_FILE`, or that of the user's own service.
        certificate_file: The certificate of the service, or of the authority that signed it, if the system does not
            know it; None for `EKORN_SERVICE_CERTIFICATE_FILE`.
        allow_plain_http: Whether the token may go to another machine unencrypted, to an address `http://host:port`.

    Raises:
        ConfigurationError: No service runs, its token cannot be read, or its address is plain HTTP to another machine.

    Example:
        client = ServiceClient()
        job = client.submit("count.py", parallelism=2)
        job.get_job_status().result()
    """

    def __init__(
        self,
        address: str | None = None,
        token_file: str | None = None,
        certificate_file: str | None = None,
        *,
        allow_plain_http: bool = False,
    ) -> None:
        address = address or variables.variable(variables.SERVICE_ADDRESS)
        token_file = token_file or variables.variable(variables.SERVICE_TOKEN_FILE)
        certificate_file = certificate_file or variables.variable(variables.SERVICE_CERTIFICATE_FILE)
        if address is None:
            running = own_service()
            if running is None:
                raise ConfigurationError(
                    "you have no running service on this machine: start one with `ekorn service start`, or name one by "
                    "its address (EKORN_SERVICE_ADDRESS) and the file with its token (EKORN_SERVICE_TOKEN_FILE)"
                )
            address = running["local_address"]
            token_file = token_file or running["token_file"]
            certificate_file = certificate_file or running["certificate_file"]
        token = None if token_file is None else read_token(token_file).decode()
        self.web = WebClient(address, token, certificate_file, allow_plain_http=allow_plain_http)

    def submit(
        self,
        program: str | os.PathLike[str],
        parallelism: int | None = None,
        *,
        arguments: Sequence[str] = (),
        settings: Mapping[str, str] | None = None,
        savepoint: str | None = None,
        slot_memory_bytes: int = 0,
        files: Iterable[str] = (),
    ) -> JobClient:
        """Submit a program, with the modules beside it that it imports; return the client of its job.

        Args:
            program: The path of the script.
            parallelism: The default parallelism of its operators, and the slots that the job may take.
            arguments: The arguments of the script.
            settings: Settings of the job's environments; those of the program win.
            savepoint: The savepoint or checkpoint to start from, as the service sees it.
            slot_memory_bytes: How much memory each slot claims.
            files: Further files and folders that the program needs.

        Raises:
            ConfigurationError: There is no such program.
            RefusedRequest: The service refuses the job.
            ServerGone: The service does not answer.
        """
        uploaded = self.upload(program, files)
        body: dict[str, Any] = {
            "programArgsList": list(arguments),
            "flinkConfiguration": dict(settings or {}),
            "parallelism": parallelism,
            "savepointPath": savepoint,
            "slotMemory": slot_memory_bytes,
            # Identifies the request if it is sent again to a new leader after the old one has read it.
            "submissionId": secrets.token_hex(16),
        }
        answer = self.web.ask("POST", f"/jars/{quote(uploaded)}/run", body).json()
        return self.job(answer["jobid"])

    def upload(self, program: str | os.PathLike[str], files: Iterable[str] = ()) -> str:
        """Bring a program to the service; return the id by which the service knows it.

        Raises:
            ConfigurationError: There is no such program.
            RefusedRequest: The service refuses it.
        """
        bundle = make_bundle(os.fspath(program), files)
        query = urlencode({"digest": bundle.digest, "name": bundle.script})
        answer = self.web.ask("POST", f"/jars/upload?{query}", file=io.BytesIO(bundle.data)).json()
        return str(answer["filename"])

    def job(self, job_id: str) -> JobClient:
        """Return the client of a job."""
        return JobClient(RemoteJob(self.web, job_id))

    def jobs(self) -> list[dict[str, Any]]:
        """Return all jobs of the service: id, name, state, and why they wait or how they ended."""
        found: list[dict[str, Any]] = self.web.get("/service/jobs")["jobs"]
        return found


def own_service(configuration: Configuration | None = None) -> dict[str, Any] | None:
    """Return process, address and token file of the user's own service on this machine; None if none runs."""
    folder = Path(service_folder(configuration or file_configuration()))
    try:
        if not is_locked(folder):
            return None  # a service that was killed leaves its file behind
        found: dict[str, Any] = json.loads((folder / RUNNING_FILE).read_bytes())
    except (OSError, ValueError):
        return None
    found.setdefault("local_address", found["address"])  # a service of an earlier version writes none
    return found
