"""`ekorn service start`, `stop` and `status`: the standing service of this user on this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any, NoReturn

from ekorn.config.configuration import Configuration
from ekorn.config.settings.service_settings import service_settings
from ekorn.config.starting_configuration import file_configuration
from ekorn.errors import ConfigurationError
from ekorn.service.client.service_client import ServiceClient, own_service
from ekorn.service.service_process import READY_FD
from ekorn.storage.private_folder import PrivateFolder
from ekorn.storage.result_modes import PRIVATE_UMASK, with_users_umask

__all__ = ["run_in_foreground", "start", "status", "stop"]

_PROCESS = [sys.executable, "-m", "ekorn.service.service_process"]
_START_S = 30.0
_STOP_S = 30.0


def start(given: Configuration) -> int:
    """Start the service as a process of its own, and return when it answers."""
    configuration, folder = _prepared(given)
    log_path = os.path.join(folder, "service.log")
    log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    reads, writes = os.pipe()
    try:
        process = subprocess.Popen(
            _PROCESS,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=(writes,),
            env=with_users_umask(os.environ) | {READY_FD: str(writes)},
            umask=PRIVATE_UMASK,
        )
    finally:
        os.close(log)
        os.close(writes)
    assert process.stdin is not None
    with process.stdin as description:  # passed through a pipe, because every user can read the command line
        description.write(json.dumps(configuration.to_dict()).encode())
    with open(reads, "rb") as ready:
        answered = ready.read()  # ends when the service answers or has ended
    if not answered:
        process.wait(_START_S)
        with open(log_path, encoding="utf-8", errors="replace") as written:
            last = written.read().strip().splitlines()[-1:]
        raise ConfigurationError(
            f"the service did not start: {last[0] if last else 'its log is empty'}; log {log_path}"
        )
    found = own_service(configuration)
    assert found is not None
    print(f"the service is running: process {found['pid']}, {found['address']}, token in {found['token_file']}")
    return 0


def run_in_foreground(given: Configuration) -> NoReturn:
    """Become the service. It logs to standard error, and ends at SIGTERM and at Ctrl-C."""
    configuration, _ = _prepared(given)
    with tempfile.TemporaryFile() as description:  # it has no name: nobody else can read the settings
        description.write(json.dumps(configuration.to_dict()).encode())
        description.seek(0)
        os.dup2(description.fileno(), 0)
        variables = with_users_umask(os.environ)
        os.umask(PRIVATE_UMASK)
        os.execve(sys.executable, _PROCESS, variables)


def stop(given: Configuration) -> int:
    """End the service. The drivers of its jobs keep running, and the next service finds them."""
    running = own_service(_merged(given))
    if running is None:
        print("you have no running service on this machine", file=sys.stderr)
        return 1
    os.kill(running["pid"], signal.SIGTERM)
    until = time.monotonic() + _STOP_S
    while own_service(_merged(given)) is not None:
        if time.monotonic() > until:
            raise ConfigurationError(f"the service has not ended after {_STOP_S:.0f} s: process {running['pid']}")
        time.sleep(0.05)
    print("the service has stopped; its jobs keep running")
    return 0


def status(given: Configuration) -> int:
    """Print where the service is and what it runs. The exit code is 1 if none runs."""
    running = own_service(_merged(given))
    if running is None:
        print("you have no running service on this machine", file=sys.stderr)
        return 1
    client = ServiceClient(running["local_address"], running["token_file"], running["certificate_file"])
    print(f"process {running['pid']}, {running['address']}, token in {running['token_file']}")
    if service_settings(_merged(given)).cluster is not None:
        cluster = client.web.get("/service/cluster")
        _print_cluster(cluster)
        if cluster["leader"] is None:
            return 1
    overview = client.web.get("/overview")
    print(
        f"{overview['jobs-running']} unfinished jobs, {overview['slots-available']} of {overview['slots-total']} "
        "slots free"
    )
    return 0


def _prepared(given: Configuration) -> tuple[Configuration, str]:
    """Return the settings of a service that is to start, and its folder, which exists and is private."""
    configuration = _merged(given)
    folder = service_settings(configuration).folder
    running = own_service(configuration)
    if running is not None:
        raise ConfigurationError(f"a service is already running: process {running['pid']}, {running['address']}")
    with PrivateFolder.opened(folder):
        pass
    return configuration, folder


def _print_cluster(cluster: dict[str, Any]) -> None:
    leader = cluster["leader"]
    print(f"leader: {_member(leader, cluster)}" if leader is not None else "leader: none at the moment")
    for standby in cluster["standbys"]:
        print(f"standby: {_member(standby, cluster)}")
    if cluster["storage-error"] is not None:
        print(f"the storage of the cluster does not answer: {cluster['storage-error']}")


def _member(member: dict[str, Any], cluster: dict[str, Any]) -> str:
    is_self = (member["host"], member["pid"]) == (cluster["self"]["host"], cluster["self"]["pid"])
    return f"{member['address']}, process {member['pid']} on {member['host']}{' (this service)' if is_self else ''}"


def _merged(given: Configuration) -> Configuration:
    return file_configuration().add_all(given)
