"""Runs in the driver: checks the address of a Spark cluster before Spark starts.

Spark asks an unreachable master for more than a minute, and then fails with an error of Java that does not name it.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

from ekorn.errors import DeploymentError

__all__ = ["check_master"]

_PATIENCE_S = 8.0  # for all masters together


def check_master(master: str, environment: Mapping[str, str] = os.environ) -> None:
    """Check that a master can be reached, as far as that is known without Spark.

    Raises:
        DeploymentError: The address has no form that Spark knows, nothing answers there, or YARN is not configured.
    """
    if master.startswith("spark://"):
        _check_reachable(master, [_host_and_port(master, each) for each in master[len("spark://") :].split(",")])
    elif master.startswith("k8s://"):
        url = urlsplit(address if "://" in (address := master[len("k8s://") :]) else f"https://{address}")
        try:
            port = url.port or (80 if url.scheme == "http" else 443)
        except ValueError:
            raise _malformed(master) from None
        if not url.hostname:
            raise _malformed(master)
        _check_reachable(master, [(url.hostname, port)])
    elif master == "yarn":
        if not environment.get("HADOOP_CONF_DIR") and not environment.get("YARN_CONF_DIR"):
            raise DeploymentError(
                "the Spark master is 'yarn', but neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set: set one of them to "
                "the directory with yarn-site.xml"
            )
    elif not re.fullmatch(r"local(\[.*\])?|local-cluster\[.*\]", master) and "://" not in master:
        raise _malformed(master)


def _host_and_port(master: str, address: str) -> tuple[str, int]:
    found = re.fullmatch(r"\[?([^\s/@]+?)\]?:(\d{1,5})", address.strip())
    if found is None or not 0 < int(found[2]) < 65536:
        raise _malformed(master)
    return found[1], int(found[2])


def _malformed(master: str) -> DeploymentError:
    return DeploymentError(
        f"{master!r} is not the address of a Spark master: write local[N], spark://HOST:PORT, yarn or k8s://HOST:PORT"
    )


def _check_reachable(master: str, addresses: list[tuple[str, int]]) -> None:
    reasons = []
    for host, port in addresses:
        try:
            socket.create_connection((host, port), timeout=_PATIENCE_S / len(addresses)).close()
        except OSError as error:
            reasons.append(f"{host}:{port}: {error.strerror or error}")
        else:
            return  # one master suffices: the others stand by
    raise DeploymentError(
        f"the Spark master {master!r} cannot be reached ({'; '.join(reasons)}): check that it runs, and the host and "
        "port of spark.master"
    )
