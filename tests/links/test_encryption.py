"""Encrypted links: nobody on the path reads or changes a message, and a peer without TLS or with another certificate
is refused.
"""

from __future__ import annotations

import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator

import pytest

from ekorn.engine.slots.link_certificate import made_by_command, made_by_package
from ekorn.errors import DeploymentError
from ekorn.links.encryption import CalledSide, CallingSide, Certificate, EncryptedAddress, EncryptedSocket
from ekorn.links.link import Link, accept, connect, listen
from ekorn.links.listener import Listener
from tests.live_jobs import until

SECRET = b"s" * 32
CANARY = b"canary-" + os.urandom(8).hex().encode()


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    made = made_by_package()
    assert made is not None
    return made


class Door:
    """A listener that speaks TLS, and the links of the peers that it admitted."""

    def __init__(self, certificate: Certificate) -> None:
        self.links: list[Link] = []
        self._listener = Listener(("127.0.0.1", 0), SECRET, self.links.append, "test", certificate)
        self._listener.start()
        assert isinstance(self._listener.address, EncryptedAddress)
        self.address = self._listener.address

    def admitted(self) -> Link:
        until(lambda: self.links)
        self.links[0].settimeout(30)
        return self.links[0]

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def door(certificate: Certificate) -> Iterator[Door]:
    opened = Door(certificate)
    yield opened
    opened.close()


class Middle:
    """Someone on the path: passes on what either side sends, keeps a copy, and may change what the caller sends."""

    def __init__(self, listener: EncryptedAddress) -> None:
        self._listener = (listener.host, listener.port)
        self._socket = listen(("127.0.0.1", 0))
        self.address = EncryptedAddress(*self._socket.getsockname()[:2])
        self.change: Callable[[bytes], bytes] = lambda data: data
        self.seen = b""
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        caller, _ = self._socket.accept()
        called = socket.create_connection(self._listener)
        threading.Thread(target=self._pass_on, args=(called, caller, lambda data: data), daemon=True).start()
        self._pass_on(caller, called, self._changed)

    def _changed(self, data: bytes) -> bytes:
        return self.change(data)

    def _pass_on(self, source, target, change: Callable[[bytes], bytes]) -> None:
        try:
            while data := source.recv(65536):
                self.seen += data
                target.sendall(change(data))
        except (OSError, EOFError):
            pass  # one side has closed the connection


class Impostor(Middle):
    """Someone on the path who speaks TLS to both sides, with a certificate of his own, and passes on what he reads."""

    def __init__(self, listener: EncryptedAddress, own: Certificate) -> None:
        self._own = CalledSide(own)
        super().__init__(listener)

    def _serve(self) -> None:
        accepted, _ = self._socket.accept()
        caller = self._shaken(EncryptedSocket(accepted, self._own))
        called = self._shaken(EncryptedSocket(socket.create_connection(self._listener), CallingSide()))
        threading.Thread(target=self._pass_on, args=(called, caller, lambda data: data), daemon=True).start()
        self._pass_on(caller, called, lambda data: data)
        for side in (caller, called):
            side.close()

    @staticmethod
    def _shaken(channel: EncryptedSocket) -> EncryptedSocket:
        while not channel.go_on_with_handshake():
            assert channel.take_in()
        return channel


def test_messages_of_all_sizes_arrive_in_both_directions(door: Door) -> None:
    link = connect(door.address, SECRET)
    other = door.admitted()
    messages = [b"", b"small", os.urandom(65_535), os.urandom(65_536), os.urandom(5_000_000), b"last"]
    for one, two in ((link, other), (other, link)):
        sender = threading.Thread(target=lambda one=one: [one.send(m[:100], m[100:]) for m in messages], daemon=True)
        sender.start()
        assert [two.receive() for _ in messages] == messages
        sender.join()
    link.close()
    with pytest.raises(EOFError):
        other.receive()


def test_a_message_that_came_with_the_one_before_it_need_not_be_waited_for(door: Door) -> None:
    link = connect(door.address, SECRET)
    other = door.admitted()
    assert not other.wait(0.01)
    for message in (b"one", b"two"):
        link.send(message)
    assert other.wait(30)
    assert other.receive() == b"one"
    assert other.wait(30)
    assert other.receive() == b"two"
    assert not other.wait(0.01)
    link.close()
    assert other.wait(30)


def test_one_thread_sends_while_another_waits_for_a_message(door: Door) -> None:
    link = connect(door.address, SECRET)
    other = door.admitted()
    heard: list[bytes] = []
    waiting = threading.Thread(target=lambda: heard.extend(link.receive() for _ in range(200)), daemon=True)
    waiting.start()
    for number in range(200):
        link.send(b"to" + bytes(number))  # `receive` waits meanwhile
        assert other.receive() == b"to" + bytes(number)
        other.send(b"back" + bytes(number))
    waiting.join(30)
    assert heard == [b"back" + bytes(number) for number in range(200)]


def test_both_directions_carry_much_at_once(door: Door) -> None:
    link = connect(door.address, SECRET)
    other = door.admitted()
    messages = [os.urandom(300_000) for _ in range(40)]
    heard: dict[int, list[bytes]] = {0: [], 1: []}
    threads = []
    for number, end in enumerate((link, other)):
        threads.append(threading.Thread(target=lambda end=end: [end.send(m) for m in messages], daemon=True))
        receive = lambda n=number, end=end: heard[n].extend(end.receive() for _ in messages)  # noqa: E731
        threads.append(threading.Thread(target=receive, daemon=True))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert heard == {0: messages, 1: messages}


def test_a_recorded_conversation_shows_no_message(door: Door) -> None:
    middle = Middle(door.address)
    link = connect(middle.address, SECRET)
    other = door.admitted()
    link.send(CANARY)
    assert other.receive() == CANARY
    other.send(CANARY * 1000)
    assert link.receive() == CANARY * 1000
    assert len(middle.seen) > 1000 * len(CANARY)
    assert CANARY not in middle.seen and b"ekorn" not in middle.seen


def test_someone_on_the_path_with_another_certificate_is_refused(door: Door) -> None:
    own = made_by_command()
    assert own is not None
    impostor = Impostor(door.address, own)
    with pytest.raises((DeploymentError, EOFError), match=r"the proof|closed"):
        connect(impostor.address, SECRET)
    assert impostor.seen.startswith(b"ekorn/2"), "he has read the proofs that he passed on"
    link = connect(door.address, SECRET)
    link.send(b"mine")
    assert door.admitted().receive() == b"mine" and len(door.links) == 1


def test_the_same_certificate_lets_a_relay_in_the_middle_pass(door: Door, certificate: Certificate) -> None:
    """The counterpart of the test above: nothing but the certificate made the difference."""
    impostor = Impostor(door.address, certificate)
    link = connect(impostor.address, SECRET)
    link.send(b"relayed")
    assert door.admitted().receive() == b"relayed"


def test_a_plain_peer_is_refused(door: Door) -> None:
    with pytest.raises((OSError, EOFError)):  # both sides wait for the other's first words
        connect((door.address.host, door.address.port), SECRET, timeout_s=0.2)
    for said in (b"ekorn/2" + b"c" * 64, b"c" * 32, bytes(range(256)) * 100):
        with socket.create_connection((door.address.host, door.address.port), timeout=30) as stranger:
            stranger.sendall(said)
            heard = b""
            try:
                while part := stranger.recv(1000):
                    heard += part
            except ConnectionResetError:
                pass  # refused before all of it was read
            assert b"ekorn" not in heard
    assert door.links == []


def test_a_tls_handshake_has_one_deadline_however_slowly_the_peer_sends(certificate: Certificate) -> None:
    ours, theirs = socket.socketpair()
    record = b"\x16\x03\x01\x02\x00" + b"\x01\x00\x01\xfc\x03\x03" + bytes(506)  # the first record of a handshake
    ended = threading.Event()
    sent = 0

    def drip() -> None:
        nonlocal sent
        try:
            while sent < len(record) and not ended.wait(0.05):
                theirs.sendall(record[sent : sent + 1])
                sent += 1
        except OSError:
            pass  # the connection was closed, as it should be

    threading.Thread(target=drip, daemon=True).start()
    assert accept(ours, SECRET, CalledSide(certificate), timeout_s=0.5) is None
    ended.set()
    theirs.close()
    assert sent < len(record) // 2, "it was given up in the middle of the record"


def test_a_peer_that_speaks_an_older_tls_is_refused(door: Door) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    address = (door.address.host, door.address.port)
    with socket.create_connection(address, timeout=30) as plain, pytest.raises(ssl.SSLError):
        context.wrap_socket(plain)
    assert door.links == []


def test_a_listener_without_tls_is_refused_by_a_caller_that_expects_it() -> None:
    links: list[Link] = []
    listener = Listener(("127.0.0.1", 0), SECRET, links.append, "test")
    listener.start()
    with pytest.raises((DeploymentError, ConnectionResetError), match=r"does not speak TLS|reset"):
        connect(EncryptedAddress(*listener.address), SECRET)
    listener.close()
    assert links == []


def test_a_wrong_secret_is_refused_inside_tls(door: Door) -> None:
    with pytest.raises((DeploymentError, EOFError)):
        connect(door.address, b"w" * 32)
    assert door.links == []


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "a byte": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "repeated": lambda data: data + data,
    "added": lambda data: data[:5] + b"x" * (len(data) - 5) + data,
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_message_changed_on_its_way_is_never_returned(door: Door, what: str) -> None:
    middle = Middle(door.address)
    link = connect(middle.address, SECRET)
    other = door.admitted()
    link.send(b"untouched")
    assert other.receive() == b"untouched"
    middle.change = CHANGES[what]
    link.send(b"a message")
    received = []
    with pytest.raises(EOFError, match="changed in transit"):
        while len(received) < 2:
            received.append(other.receive())
    assert received in ([], [b"a message"]) and (not received or what == "repeated")
    with pytest.raises(OSError):  # the side that has noticed the change has closed its socket
        other.local_host()


def test_messages_dropped_or_exchanged_on_their_way_end_the_link(door: Door) -> None:
    middle = Middle(door.address)
    link = connect(middle.address, SECRET)
    other = door.admitted()
    held: list[bytes] = []

    def hold(data: bytes) -> bytes:
        held.append(data)
        return b""

    middle.change = hold
    link.send(b"first")
    until(lambda: held)
    middle.change = lambda data: data + held[0]
    link.send(b"second")
    with pytest.raises(EOFError, match="changed in transit"):
        other.receive()


def test_a_certificate_shows_no_private_key_and_a_broken_one_is_refused(certificate: Certificate) -> None:
    assert "PRIVATE" not in repr(certificate) and "BEGIN" not in repr(certificate)
    with pytest.raises(DeploymentError, match="PEM"):
        CalledSide(Certificate(b"nothing"))
    only_certificate = certificate.pem.partition(b"-----BEGIN PRIVATE")[0]
    with pytest.raises(DeploymentError, match="cannot be used"):
        CalledSide(Certificate(only_certificate))
