"""What a link asks of its sockets, and how long a caller tries to connect."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ekorn.engine.slots.link_certificate import made_by_package
from ekorn.errors import DeploymentError
from ekorn.links import link as links
from ekorn.links.encryption import Certificate, EncryptedSocket
from ekorn.links.link import Link, accept, connect, listen
from ekorn.links.listener import Acceptor, Listener, Newcomers
from tests.live_jobs import until

SECRET = b"s" * 32


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    made = made_by_package()
    assert made is not None
    return made


@pytest.fixture(params=["unix", "tcp", "tls"])
def pair(request: pytest.FixtureRequest, tmp_path: Path, certificate: Certificate) -> Iterator[tuple[Link, Link]]:
    """The links of the caller and of the called."""
    called: list[Link] = []
    address = str(tmp_path / "s") if request.param == "unix" else ("127.0.0.1", 0)
    tls = certificate if request.param == "tls" else None
    listener = Listener(address, SECRET, called.append, "test", tls)
    listener.start()
    caller = connect(listener.address, SECRET)
    until(lambda: called)
    yield caller, called[0]
    listener.close()
    for each in (caller, called[0]):
        each.close()


def plain(link: Link) -> socket.socket:
    return link._socket._socket if isinstance(link._socket, EncryptedSocket) else link._socket


def test_after_the_handshake_a_link_waits_for_any_time(pair: tuple[Link, Link]) -> None:
    assert [plain(link).gettimeout() for link in pair] == [None, None]
    pair[0].settimeout(7.0)
    assert plain(pair[0]).gettimeout() == 7.0


def test_a_host_that_vanished_is_noticed_after_three_minutes_and_small_messages_go_at_once(
    pair: tuple[Link, Link],
) -> None:
    for link in pair:
        sock = plain(link)
        if sock.family == socket.AF_UNIX:
            continue
        found = {name: sock.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in links._SILENCE}
        assert found["TCP_KEEPIDLE"] + found["TCP_KEEPINTVL"] * found["TCP_KEEPCNT"] == 180
        assert found["TCP_USER_TIMEOUT"] == 180_000, "data that is not acknowledged has the same time"
        assert found["TCP_KEEPIDLE"] == 60, "and an idle connection is asked after a minute"
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1


def test_a_link_that_is_shut_down_ends_for_its_peer_before_it_is_closed(pair: tuple[Link, Link]) -> None:
    pair[0].shut_down()
    assert plain(pair[0]).fileno() >= 0
    with pytest.raises(EOFError):
        pair[1].receive()


def test_a_link_that_is_closed_releases_its_socket(pair: tuple[Link, Link]) -> None:
    pair[0].close()
    assert plain(pair[0]).fileno() == -1
    pair[0].close()


def test_a_port_can_be_listened_on_again_while_its_connections_end() -> None:
    with listen(("127.0.0.1", 0)) as first:
        address = first.getsockname()
        ours = socket.create_connection(address)
        theirs = first.accept()[0]
    theirs.close()  # its end of the connection lingers
    ours.close()
    listen(address).close()


class Clock:
    """Stands for the module `time`: sleeping moves it on at once."""

    def __init__(self) -> None:
        self.now_s = 1_000.0
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now_s += seconds


def crowded(monkeypatch: pytest.MonkeyPatch, error: Exception, *, until_attempt: int = 1_000_000) -> Clock:
    """Let each attempt to connect fail until one of them."""
    clock, attempts = Clock(), []

    def attempt(address: object, secret: bytes, deadline: float) -> str:
        attempts.append(deadline)
        if len(attempts) < until_attempt:
            raise error
        return "a link"

    monkeypatch.setattr(links, "time", clock)
    monkeypatch.setattr(links, "_connect_once", attempt)
    return clock


@pytest.mark.parametrize("error", [EOFError(), ConnectionResetError(), BrokenPipeError(), BlockingIOError()])
def test_a_caller_tries_again_after_longer_and_longer_pauses(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    clock = crowded(monkeypatch, error, until_attempt=9)
    assert connect("/nowhere", SECRET, 60.0) == "a link"  # type: ignore[comparison-overlap]
    assert clock.pauses == pytest.approx([0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0, 1.0])


def test_a_caller_gives_up_where_another_pause_would_pass_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = crowded(monkeypatch, EOFError("pushed out"))
    with pytest.raises(EOFError, match="pushed out"):
        connect("/nowhere", SECRET, 0.1)
    assert clock.pauses == pytest.approx([0.02, 0.04])


@pytest.mark.parametrize("error", [ConnectionRefusedError(), DeploymentError("no secret"), FileNotFoundError()])
def test_a_caller_does_not_try_again_where_that_cannot_help(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    clock = crowded(monkeypatch, error)
    with pytest.raises(type(error)):
        connect("/nowhere", SECRET, 60.0)
    assert clock.pauses == []


def test_the_time_for_a_handshake_is_what_is_left_until_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(links, "time", clock)
    assert links._remaining(1_003.0) == 3.0
    with pytest.raises(TimeoutError, match="the handshake was not finished in time"):
        links._remaining(999.0)


def test_a_peer_without_the_secret_is_closed_on_both_sides(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    refused: list[Link | None] = []
    called = threading.Thread(target=lambda: refused.append(accept(ours, SECRET)))
    called.start()
    theirs.sendall(bytes(64))
    called.join(60)
    assert refused == [None] and ours.fileno() == -1
    theirs.close()


def test_a_socket_that_cannot_connect_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[socket.socket] = []

    class Noted(socket.socket):
        def __init__(self, *of: object, **more: object) -> None:
            super().__init__(*of, **more)  # type: ignore[arg-type]
            made.append(self)

    monkeypatch.setattr("ekorn.links.link.socket.socket", Noted)
    with pytest.raises(FileNotFoundError):
        connect(str(tmp_path / "nowhere"), SECRET)
    assert [sock.fileno() for sock in made] == [-1]


def test_a_connection_that_is_served_is_no_newcomer_any_more() -> None:
    sock, seen = socket.create_server(("127.0.0.1", 0)), threading.Event()
    acceptor = Acceptor(sock, lambda accepted: seen.set(), "test", most_newcomers=1)
    acceptor.start()
    with socket.create_connection(sock.getsockname(), timeout=60):
        assert seen.wait(60)
        until(lambda: not acceptor.newcomers._waiting)
    acceptor.close()


def test_of_a_crowd_the_oldest_is_ended_as_soon_as_there_is_one_too_many() -> None:
    pairs = [socket.socketpair() for _ in range(4)]
    newcomers = Newcomers(3)
    for ours, _ in pairs[:3]:
        newcomers.add(ours)
    assert len(newcomers._waiting) == 3
    newcomers.add(pairs[3][0])
    assert list(newcomers._waiting) == [ours for ours, _ in pairs[1:]]
    pairs[0][1].settimeout(60)
    assert pairs[0][1].recv(1) == b""
    newcomers.remove(pairs[0][0])
    newcomers.remove(pairs[1][0])
    assert list(newcomers._waiting) == [ours for ours, _ in pairs[2:]]
    for _ in range(3):
        newcomers.close_oldest()  # also when none is left
    for ours, theirs in pairs:
        ours.close()
        theirs.close()
