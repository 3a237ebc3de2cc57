"""Connections to a slot: a peer without the secret is refused, and nothing that it sends is interpreted."""

from __future__ import annotations

import pickle
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tamias.errors import DeploymentError
from tamias.slot.link import Link, accept, connect, listen
from tests.live_jobs import PickleBomb, until

SECRET = b"s" * 32


class Door:
    """A listener that authenticates each peer, and keeps the links of those it admitted."""

    def __init__(self, path: str) -> None:
        self.address = path
        self.admitted: list[Link | None] = []
        self._listener = listen(path)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=lambda s=sock: self.admitted.append(accept(s, SECRET)), daemon=True).start()

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    opened = Door(str(tmp_path_factory.mktemp("d") / "s"))
    yield opened
    opened.close()


def raw(door: Door) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(10)
    sock.connect(door.address)
    return sock


def answered(sock: socket.socket) -> bytes:
    """Return everything that the listener sends until it closes the connection."""
    said = b""
    try:
        while part := sock.recv(65536):
            said += part
    except OSError:
        pass
    return said


def test_both_sides_that_know_the_secret_can_talk(door: Door) -> None:
    link = connect(door.address, SECRET)
    until(lambda: door.admitted)
    other = door.admitted[0]
    assert other is not None
    big = b"x" * 3_000_000
    link.send(b"small")
    threading.Thread(target=link.send, args=(big,), daemon=True).start()
    assert other.receive() == b"small"
    assert other.receive() == big
    link.send(b"")
    assert other.receive() == b""
    link.close()
    with pytest.raises(EOFError):
        other.receive()


def test_a_wrong_secret_is_refused_on_both_sides(door: Door) -> None:
    with pytest.raises((DeploymentError, EOFError)):
        connect(door.address, b"w" * 32)
    until(lambda: door.admitted)
    assert door.admitted == [None]


@pytest.mark.parametrize("what", ["pickle", "garbage", "nothing", "own challenge"])
def test_nothing_that_a_stranger_sends_is_interpreted(door: Door, tmp_path: Path, what: str) -> None:
    mark = tmp_path / "exploded"
    sock = raw(door)
    greeting = sock.recv(40)
    if what == "pickle":
        payload = pickle.dumps(PickleBomb(mark))
        sock.sendall(b"c" * 32 + len(payload).to_bytes(8, "little") + payload)
    elif what == "garbage":
        sock.sendall(bytes(range(256)) * 40)
    elif what == "own challenge":  # send the challenge back, and then the listener's own proof
        sock.sendall(greeting[8:40])
        sock.sendall(sock.recv(32))
    else:
        sock.shutdown(socket.SHUT_WR)
    answered(sock)
    until(lambda: door.admitted)
    assert door.admitted == [None]
    assert not mark.exists()


def test_silent_strangers_do_not_block_other_peers(door: Door) -> None:
    strangers = [raw(door) for _ in range(50)]
    link = connect(door.address, SECRET)
    link.close()
    for sock in strangers:
        sock.close()


def test_the_socket_is_for_its_owner_only(door: Door) -> None:
    assert Path(door.address).stat().st_mode & 0o077 == 0
