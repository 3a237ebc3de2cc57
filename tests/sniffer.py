"""Reads the packets of a network interface of this machine."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


class Sniffer:
    """Sees what passes over an interface, and counts the packets that hold a word."""

    def __init__(self, interface: str, *words: bytes) -> None:
        self.seen = dict.fromkeys(words, 0)
        self.packets = 0
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))  # every protocol
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
        self._socket.bind((interface, 0))
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        packet = bytearray(1 << 17)
        while True:
            try:
                length = self._socket.recv_into(packet)
            except OSError:
                return  # closed
            self.packets += 1
            for word in self.seen:
                if packet.find(word, 0, length) >= 0:
                    self.seen[word] += 1

    def close(self) -> None:
        self._socket.close()


@contextmanager
def sniffing(interface: str, *words: bytes) -> Iterator[Sniffer]:
    """Look for words in the packets of an interface; skip the test where that is not permitted."""
    try:
        started = Sniffer(interface, *words)
    except PermissionError:
        pytest.skip("reading packets needs the right to open raw sockets")
    try:
        yield started
    finally:
        started.close()
