"""Ports for services that listen on them later, or are stopped and started again on the same port."""

from __future__ import annotations

import random
import socket

# Below those that Linux gives to outgoing connections, one of which could take the port of a stopped service.
_RANGE = range(20_000, 32_000)


def free_ports(count: int) -> list[int]:
    """Return ports of loopback on which nothing listens."""
    found: list[int] = []
    for port in random.SystemRandom().sample(_RANGE, len(_RANGE)):
        if len(found) == count:
            break
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
    return found
