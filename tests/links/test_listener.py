"""A listener stays open to its own peers, however many strangers connect and whatever `accept` reports."""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Iterator

import pytest

from ekorn.links.link import Link, connect
from ekorn.links.listener import MAX_NEWCOMERS, Acceptor, Listener
from tests.live_jobs import until

SECRET = b"s" * 32


@pytest.fixture
def links() -> list[Link]:
    return []


@pytest.fixture
def listener(links: list[Link]) -> Iterator[Listener]:
    """A listener that has all the time in the world for a handshake: only a crowd makes it close a connection."""
    opened = Listener(("127.0.0.1", 0), SECRET, links.append, "test", handshake_s=3_600)
    opened.start()
    yield opened
    opened.close()


def stranger(listener: Listener) -> socket.socket:
    assert isinstance(listener.address, tuple)
    return socket.create_connection(listener.address, timeout=60)


def is_open(sock: socket.socket) -> bool:
    """Return whether the listener still waits for the peer to say something."""
    sock.setblocking(False)
    try:
        while sock.recv(1024):
            pass
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def test_one_stranger_too_many_closes_the_oldest(listener: Listener) -> None:
    strangers = [stranger(listener) for _ in range(MAX_NEWCOMERS + 10)]
    until(lambda: not any(is_open(sock) for sock in strangers[:10]))
    assert all(is_open(sock) for sock in strangers[10:])
    for sock in strangers:
        sock.close()


def test_an_authenticated_peer_is_never_closed_for_strangers(listener: Listener, links: list[Link]) -> None:
    link = connect(listener.address, SECRET)
    until(lambda: links)
    strangers = [stranger(listener) for _ in range(2 * MAX_NEWCOMERS)]
    until(lambda: not is_open(strangers[0]))
    link.send(b"still here")
    assert links[0].receive() == b"still here"
    for sock in strangers:
        sock.close()


class Failing(socket.socket):
    """A listening socket whose first calls of `accept` fail."""

    errors: list[int] = []

    def accept(self):
        if self.errors:
            raise OSError(self.errors.pop(0), "on purpose")
        return super().accept()


def accept_after_three(code: str) -> None:
    """Fail three calls of `accept` with an error, and check that a connection is accepted afterwards."""
    sock = Failing(socket.AF_INET)
    sock.bind(("127.0.0.1", 0))
    sock.listen()
    sock.errors = [getattr(errno, code)] * 3
    heard = threading.Event()
    acceptor = Acceptor(sock, lambda accepted: heard.set(), "test")
    acceptor.start()
    with socket.create_connection(sock.getsockname()):
        assert heard.wait(60)
    acceptor.close()


@pytest.mark.parametrize("code", ["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "ECONNABORTED", "EPERM"])
def test_a_failing_accept_is_not_the_end(code: str) -> None:
    accept_after_three(code)


@pytest.mark.parametrize(("code", "told"), [("EMFILE", 0), ("ECONNABORTED", 0), ("EPERM", 3)])
def test_only_an_error_that_does_not_pass_by_itself_is_logged(
    code: str, told: int, caplog: pytest.LogCaptureFixture
) -> None:
    accept_after_three(code)
    assert caplog.text.count("a connection could not be accepted, the listener goes on") == told


def test_a_closed_listener_frees_its_port_and_ends_its_thread(links: list[Link]) -> None:
    listener = Listener(("127.0.0.1", 0), SECRET, links.append, "a listener that is closed")
    listener.start()
    threads = [thread for thread in threading.enumerate() if thread.name == "a listener that is closed"]
    assert threads
    listener.close()
    until(lambda: not any(thread.is_alive() for thread in threads))
    with pytest.raises(ConnectionRefusedError):
        stranger(listener)


class Scarce(threading.Thread):
    """A thread that the system may have no room for."""

    left = 0  # the number of threads that can still be started

    def start(self) -> None:
        type(self).left -= 1
        if self.left < 0:
            raise RuntimeError("can't start new thread")
        super().start()


def test_a_connection_without_a_thread_is_closed_and_the_next_one_is_served(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    heard = threading.Event()
    sock = socket.create_server(("127.0.0.1", 0))
    acceptor = Acceptor(sock, lambda accepted: heard.set(), "test")
    address = sock.getsockname()
    monkeypatch.setattr("ekorn.links.listener.threading.Thread", Scarce)
    Scarce.left = 1  # for the listener itself
    acceptor.start()
    with socket.create_connection(address, timeout=60) as refused:
        assert refused.recv(1) == b""
    until(lambda: "a connection could not be accepted, the listener goes on: can't start new thread" in caplog.text)
    assert not heard.is_set() and not acceptor.newcomers._waiting
    Scarce.left = 1_000
    with socket.create_connection(address, timeout=60):
        assert heard.wait(60)
    acceptor.close()
