"""Connections to a slot: a peer without the secret is refused, and nothing that it sends is interpreted."""

from __future__ import annotations

import pickle
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ekorn.errors import DeploymentError
from ekorn.links.link import Link, MessageDigests, MessageTooLarge, accept, connect, listen
from ekorn.links.listener import Listener
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
    sock.settimeout(30)
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
        sock.sendall(greeting[-32:])
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


def test_a_handshake_has_one_deadline_however_slowly_the_peer_sends() -> None:
    ours, theirs = socket.socketpair()
    ended = threading.Event()
    words = b"ekorn/2" + bytes(32)  # the first words of a handshake
    sent = 0

    def drip() -> None:
        nonlocal sent
        try:
            while sent < len(words) and not ended.wait(0.1):  # each byte comes well within the deadline
                theirs.sendall(words[sent : sent + 1])
                sent += 1
        except OSError:
            pass  # the connection was closed, as it should be

    threading.Thread(target=drip, daemon=True).start()
    assert accept(ours, SECRET, timeout_s=0.5) is None
    ended.set()
    theirs.close()
    assert sent < len(words), "it was given up in the middle of the words"


class Crowded:
    """A listener that closes the first connections in their handshake, as it does when strangers push them out."""

    def __init__(self, path: str, pushed_out: int) -> None:
        self._listener = listen(path)
        self._pushed_out = pushed_out
        self.connections = 0
        self.admitted: list[Link | None] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            if self.connections <= self._pushed_out:
                sock.sendall(b"ekorn/2" + b"c" * 32)
                sock.recv(1)
                sock.close()
            else:
                self.admitted.append(accept(sock, SECRET))

    def close(self) -> None:
        self._listener.close()


def test_a_peer_that_is_pushed_out_in_its_handshake_tries_again(tmp_path: Path) -> None:
    crowded = Crowded(str(tmp_path / "s"), pushed_out=3)
    link = connect(str(tmp_path / "s"), SECRET)
    until(lambda: crowded.admitted)
    assert crowded.connections == 4
    link.send(b"here")
    assert crowded.admitted[0] is not None and crowded.admitted[0].receive() == b"here"
    crowded.close()


def test_a_peer_that_is_pushed_out_each_time_gives_up_at_its_deadline(tmp_path: Path) -> None:
    crowded = Crowded(str(tmp_path / "s"), pushed_out=1_000_000)
    with pytest.raises((EOFError, OSError)):
        connect(str(tmp_path / "s"), SECRET, timeout_s=0.5)
    assert crowded.connections > 1
    crowded.close()


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux shows the timers of connections")
def test_both_sides_of_an_idle_tcp_connection_ask_whether_the_other_host_is_there() -> None:
    links: list[Link] = []
    listener = Listener(("127.0.0.1", 0), SECRET, links.append, "test")
    listener.start()
    link = connect(listener.address, SECRET)
    until(lambda: links)
    port = f"{listener.address[1]:04X}"
    keepalive = "02"  # the kind of timer that is set

    def timers() -> list[str]:
        rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        established = [row for row in rows if row[3] == "01"]
        return [row[5][:2] for row in established if port in (row[1].split(":")[1], row[2].split(":")[1])]

    until(lambda: timers() == [keepalive, keepalive])  # for a moment, another timer waits for an acknowledgement
    link.close()
    listener.close()


class Middle:
    """Someone on the path of a TCP connection, who passes everything on and may change what the caller sends."""

    def __init__(self, listener: tuple[str, int]) -> None:
        self._listener = listener
        self._socket = listen(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._socket.getsockname()[:2]
        self.change: Callable[[bytes], bytes] = lambda data: data
        self.seen = b""
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        caller, _ = self._socket.accept()
        called = socket.create_connection(self._listener)
        threading.Thread(target=self._pass_on, args=(called, caller, lambda data: data), daemon=True).start()
        self._pass_on(caller, called, self._changed)

    def _changed(self, data: bytes) -> bytes:
        self.seen = data
        return self.change(data)

    @staticmethod
    def _pass_on(source: socket.socket, target: socket.socket, change: Callable[[bytes], bytes]) -> None:
        try:
            while data := source.recv(65536):
                target.sendall(change(data))
        except OSError:
            pass  # one side has closed the connection


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "a byte": lambda data: data[:10] + bytes([data[10] ^ 1]) + data[11:],
    "repeated": lambda data: data + data,
    "added": lambda data: (3).to_bytes(8, "little") + b"abc" + b"d" * 32 + data,
    "shortened": lambda data: (5).to_bytes(8, "little") + data[8:],
}


@pytest.fixture
def tapped() -> Iterator[tuple[Link, Middle, Link]]:
    """The link of the caller, someone on its path, and the link of the called side."""
    links: list[Link] = []
    listener = Listener(("127.0.0.1", 0), SECRET, links.append, "test")
    listener.start()
    assert isinstance(listener.address, tuple)
    middle = Middle(listener.address)
    link = connect(middle.address, SECRET)
    until(lambda: links)
    links[0].settimeout(30)
    yield link, middle, links[0]
    listener.close()


@pytest.mark.parametrize("what", CHANGES)
def test_a_message_changed_on_its_way_over_tcp_is_never_returned(what: str, tapped: tuple[Link, Middle, Link]) -> None:
    link, middle, called = tapped
    link.send(b"untouched")
    assert called.receive() == b"untouched"
    middle.change = CHANGES[what]
    link.send(b"a message")
    received = []
    with pytest.raises(EOFError, match="changed in transit"):
        while len(received) < 2:
            received.append(called.receive())
    assert received in ([], [b"a message"]) and (not received or what == "repeated")


def test_a_changed_message_ends_the_connection_for_both_sides() -> None:
    ours, theirs = socket.socketpair()
    link = Link(ours, received=MessageDigests(b"k" * 32))
    theirs.sendall((3).to_bytes(8, "little") + b"abc" + b"d" * 32)
    with pytest.raises(EOFError, match="changed in transit"):
        link.receive()
    theirs.settimeout(30)
    assert theirs.recv(1) == b""
    theirs.close()


ORDERS: dict[str, Callable[[bytes, bytes], bytes]] = {
    "the first is dropped": lambda first, second: second,
    "they are exchanged": lambda first, second: second + first,
}


@pytest.mark.parametrize("what", ORDERS)
def test_messages_dropped_or_exchanged_on_their_way_over_tcp_are_never_returned(
    what: str, tapped: tuple[Link, Middle, Link]
) -> None:
    link, middle, called = tapped
    middle.seen = b""
    middle.change = lambda data: b""
    link.send(b"first one")
    until(lambda: middle.seen)
    first = middle.seen
    middle.change = lambda data: ORDERS[what](first, data)
    link.send(b"the second")
    with pytest.raises(EOFError, match="changed in transit"):
        called.receive()


def test_messages_over_a_unix_socket_carry_no_digest(door: Door) -> None:
    link = connect(door.address, SECRET)
    until(lambda: door.admitted)
    link.send(b"abc")
    assert door.admitted[0] is not None
    assert door.admitted[0]._socket.recv(100) == (3).to_bytes(8, "little") + b"abc"


def test_the_socket_is_for_its_owner_only(door: Door) -> None:
    assert Path(door.address).stat().st_mode & 0o077 == 0


@pytest.fixture(params=["unix", "tcp"])
def both_sides(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Link, Link]]:
    """Two links that are connected to each other."""
    address = ("127.0.0.1", 0) if request.param == "tcp" else str(tmp_path_factory.mktemp("d") / "s")
    called: list[Link] = []
    listener = Listener(address, SECRET, called.append, "test")
    listener.start()
    caller = connect(listener.address, SECRET)
    until(lambda: called)
    yield caller, called[0]
    listener.close()
    caller.close()


@pytest.mark.parametrize("sizes", [(), (0,), (1,), (65_535,), (65_536,), (65_000, 535), (65_000, 536), (1, 3 << 20, 7)])
def test_a_message_of_any_size_arrives_whole_and_the_next_one_after_it(
    both_sides: tuple[Link, Link], sizes: tuple[int, ...]
) -> None:
    caller, called = both_sides
    parts = [bytes([number + 1]) * size for number, size in enumerate(sizes)]
    for sender, receiver in ((caller, called), (called, caller)):
        writing = threading.Thread(target=lambda s=sender: (s.send(*parts), s.send(b"next")))
        writing.start()
        assert receiver.receive() == b"".join(parts)
        assert receiver.receive() == b"next"
        writing.join()


def test_a_link_that_is_shut_down_ends_both_sides(both_sides: tuple[Link, Link]) -> None:
    caller, called = both_sides
    caller.shut_down()
    for link in (caller, called):
        with pytest.raises(EOFError, match="closed the connection"):
            link.receive()
    caller.shut_down()  # again, and after the other side has closed its socket
    called.close()
    caller.close()


def test_closing_a_link_ends_a_receive_on_another_thread(both_sides: tuple[Link, Link]) -> None:
    link, _ = both_sides
    ended: list[BaseException] = []

    def receive() -> None:
        try:
            link.receive()
        except (EOFError, OSError) as error:
            ended.append(error)

    waiting = threading.Thread(target=receive, daemon=True)
    waiting.start()
    waiting.join(0.1)
    assert waiting.is_alive()
    link.close()
    waiting.join(60)
    assert len(ended) == 1


def test_a_receive_with_a_limit_gives_up_and_without_one_waits(both_sides: tuple[Link, Link]) -> None:
    caller, called = both_sides
    caller.settimeout(0.01)
    with pytest.raises(TimeoutError):
        caller.receive()
    caller.settimeout(None)
    late = threading.Timer(0.2, lambda: called.send(b"late"))
    late.start()
    assert caller.receive() == b"late"
    late.join()


def test_a_link_waits_for_a_message_without_taking_it(both_sides: tuple[Link, Link]) -> None:
    caller, called = both_sides
    assert not called.wait(0.0)
    assert not called.wait(0.01)
    late = threading.Timer(0.05, lambda: caller.send(b"one"))
    late.start()
    assert called.wait(30)
    assert called.wait(0.0)
    late.join()
    assert called.receive() == b"one"
    assert not called.wait(0.0)
    caller.close()
    assert called.wait(30), "the end of the connection has arrived"
    called.close()
    assert called.wait(30), "a link that is closed waits for nothing"


def test_a_link_knows_the_interface_that_leads_to_its_peer() -> None:
    listener = Listener(("127.0.0.1", 0), SECRET, lambda link: None, "test")
    listener.start()
    assert connect(listener.address, SECRET).local_host() == "127.0.0.1"
    listener.close()


def test_a_listener_of_another_kind_is_refused_with_its_greeting() -> None:
    server = socket.create_server(("127.0.0.1", 0))

    def greet() -> None:
        sock, _ = server.accept()
        sock.sendall(b"HTTP/1.1 400 Bad Request\r\n" + b" " * 100)

    threading.Thread(target=greet, daemon=True).start()
    with pytest.raises(DeploymentError, match=r"not an ekorn slot .* its greeting was b'HTTP/1\.1'"):
        connect(server.getsockname(), SECRET)
    server.close()


def test_a_connection_that_proves_nothing_is_closed_at_once() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    peers: list[socket.socket] = []

    def greet() -> None:
        peers.append(server.accept()[0])
        peers[0].sendall(b"x" * 200)

    threading.Thread(target=greet, daemon=True).start()
    with pytest.raises(DeploymentError) as refused:
        connect(server.getsockname(), SECRET)
    peers[0].settimeout(30)
    assert answered(peers[0]) == b""
    with pytest.raises(OSError, match=r"Connection reset|Broken pipe"):  # and not only by its side of the conversation
        for _ in range(1_000):
            peers[0].sendall(b"x" * 65_536)
    assert refused.value is not None
    server.close()


def test_a_message_that_is_announced_larger_than_any_is_not_read() -> None:
    ours, theirs = socket.socketpair()
    theirs.sendall((1 << 63).to_bytes(8, "little"))
    with pytest.raises(EOFError, match=f"a message of {1 << 63} bytes was announced"):
        Link(ours).receive()
    ours.close()
    theirs.close()


def pair_over_tcp(caller: str) -> tuple[socket.socket, socket.socket]:
    """Return both ends of a connection to 127.0.0.1 from an address: every 127.x.y.z is this host."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ours = socket.create_connection(listening.getsockname(), source_address=(caller, 0))
        return ours, listening.accept()[0]


def test_a_link_knows_whether_it_crosses_hosts() -> None:
    near, far, local = pair_over_tcp("127.0.0.1"), pair_over_tcp("127.0.0.2"), socket.socketpair()
    assert [[Link(end).crosses_hosts for end in pair] for pair in (near, far, local)] == [
        [False, False],
        [True, True],
        [False, False],
    ]
    for sock in (*near, *far, *local):
        sock.close()
    assert not Link(far[0]).crosses_hosts, "the one that has ended"


@pytest.mark.parametrize("way", ["receive", "receive_arrived", "take_arrived"])
def test_a_message_may_be_as_large_as_is_accepted_and_no_larger(way: str) -> None:
    ours, theirs = socket.socketpair()
    link, peer = Link(ours), Link(theirs)
    link.accept_at_most(5)

    def next_message() -> bytes:
        if way == "receive":
            return link.receive()
        (message,) = link.receive_arrived() if way == "receive_arrived" else link.take_arrived()
        return message

    peer.send(b"12345")
    assert next_message() == b"12345"
    peer.send(b"123456")
    with pytest.raises(MessageTooLarge, match="a message of 6 bytes was announced; at most 5 are accepted"):
        next_message()
    link.close()
    peer.close()


def test_a_length_above_16_gib_is_taken_for_damage() -> None:
    ours, theirs = socket.socketpair()
    link = Link(ours)
    theirs.sendall(((1 << 34) + 1).to_bytes(8, "little"))
    with pytest.raises(MessageTooLarge, match="at most 17179869184 are accepted"):
        link.receive()
    link.close()
    theirs.close()


def test_a_connection_with_the_number_of_a_standard_input_that_was_closed_is_waited_for() -> None:
    """In a process of its own: other threads of this one might take the number."""
    program = (
        "import os, socket; os.close(0); ours, theirs = socket.socketpair(); assert ours.fileno() == 0\n"
        "from ekorn.links.link import Link\n"
        "assert not Link(ours).wait(0.0); theirs.sendall(b'x'); assert Link(ours).wait(30)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_messages_that_arrive_in_pieces_are_returned_when_they_are_whole() -> None:
    ours, theirs = socket.socketpair()
    link = Link(ours)
    whole = b"".join(len(each).to_bytes(8, "little") + each for each in (b"", b"one", b"three"))
    assert link.take_arrived() == []
    found = []
    for byte in whole:
        theirs.sendall(bytes([byte]))
        found += link.take_arrived()
    assert found == [b"", b"one", b"three"]
    theirs.sendall(whole + whole[:5])
    assert link.take_arrived() == [b"", b"one", b"three"]
    theirs.sendall(whole[5:])
    assert link.receive_arrived() == [b"", b"one", b"three"]
    theirs.close()
    for wait in (link.take_arrived, link.receive_arrived):
        with pytest.raises(EOFError, match="the other side closed the connection"):
            wait()
    link.close()


def test_a_message_whose_digest_arrives_later_is_waited_for() -> None:
    ours, theirs = socket.socketpair()
    link, key = Link(ours, received=MessageDigests(b"k")), MessageDigests(b"k")
    whole = (3).to_bytes(8, "little") + b"one" + key.of(3, [b"one"])
    found = []
    for byte in whole:
        theirs.sendall(bytes([byte]))
        found += link.take_arrived()
    assert found == [b"one"]
    link.close()
    theirs.close()


def test_small_messages_are_sent_as_far_as_the_connection_takes_them() -> None:
    ours, theirs = socket.socketpair()
    link, peer = Link(ours), Link(theirs)
    assert link.never_waits
    assert link.send_now(b"a", b"b") is None
    assert link.send_each_now([b"c", b""]) is None
    assert [peer.receive() for _ in range(3)] == [b"ab", b"c", b""]
    large = b"x" * (8 << 20)
    rest = link.send_now(large)
    assert rest is not None and 0 < len(rest) < len(large) + 8
    sending = threading.Thread(target=link.send_rest, args=(rest,))
    sending.start()
    assert peer.receive() == large
    sending.join(60)
    peer.close()
    assert link.send_now(b"late") == (4).to_bytes(8, "little") + b"late", "`send_rest` finds out"
    with pytest.raises(OSError, match="Broken pipe"):
        link.send_rest(b"late")
    link.close()
