"""Tells which user is at the other end of a Unix socket."""

from __future__ import annotations

import socket
import struct

__all__ = ["peer_uid"]


def peer_uid(link: socket.socket) -> int | None:
    """Return the user id of the peer; None if the kernel does not report it, so only the folder protects the socket."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    credentials = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    uid: int = struct.unpack("3i", credentials)[1]
    return uid
