"""A pipelined connection: many messages under way, answered in their order; without an answer all of them fail."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from ekorn.links.link import Link, connect
from ekorn.links.listener import Listener
from ekorn.links.pipelined_link import PipelinedLink
from tests.live_jobs import until

SECRET = b"a secret of this test"


@contextmanager
def connected(serve: Callable[[Link], None], *, unix: str | None = None) -> Iterator[PipelinedLink]:
    listener = Listener(unix or ("127.0.0.1", 0), SECRET, serve, "test")
    listener.start()
    link = PipelinedLink(connect(listener.address, SECRET), "test-answers")
    try:
        yield link
    finally:
        link.close()
        listener.close()


def echo(link: Link) -> None:
    try:
        while True:
            link.send_each([message.upper() for message in link.receive_arrived()])
    except (EOFError, OSError):
        link.close()


@pytest.mark.parametrize("over_unix", [False, True])
def test_answers_belong_to_their_messages_whatever_their_size(over_unix, tmp_path):
    messages = [b"", b"a", b"b" * 70_000, b"c" * 1_000_000, *(f"m{n}".encode() for n in range(500))]
    with connected(echo, unix=str(tmp_path / "socket") if over_unix else None) as link:
        asked = [link.ask(message, 30) for message in messages]
        assert [each.result(30) for each in asked] == [message.upper() for message in messages]


def test_messages_do_not_wait_for_the_answers_to_earlier_ones():
    arrived, go = threading.Semaphore(0), threading.Event()

    def serve(link: Link) -> None:
        held = []
        while len(held) < 3:
            for message in link.receive_arrived():
                held.append(message)
                arrived.release()
        go.wait(30)
        link.send_each(held)

    with connected(serve) as link:
        asked = [link.ask(message, 30) for message in (b"1", b"2", b"3")]
        for _ in asked:
            assert arrived.acquire(timeout=30), "all of them are there before the first is answered"
        go.set()
        assert [each.result(30) for each in asked] == [b"1", b"2", b"3"]


def test_all_messages_fail_if_the_connection_breaks_and_no_other_can_be_sent():
    go = threading.Event()

    def serve(link: Link) -> None:
        go.wait(30)
        link.close()

    with connected(serve) as link:
        asked = [link.ask(b"first", 30), link.ask(b"second", 30)]
        go.set()
        for each in asked:
            with pytest.raises((OSError, EOFError)):
                each.result(30)
        assert link.is_broken
        with pytest.raises((OSError, EOFError)):
            link.ask(b"later", 30).result(30)


def test_an_overdue_answer_breaks_the_connection():
    ended = threading.Event()

    def serve(link: Link) -> None:
        ended.wait(30)

    with connected(serve) as link:
        asked = [link.ask(b"first", 0.0), link.ask(b"second", 60.0)]
        for each in asked:
            with pytest.raises(TimeoutError, match="in time"):
                each.result(30)
        assert link.is_broken, "a late answer must not be taken for that of another message"
        ended.set()


def test_an_overdue_answer_frees_a_thread_that_waits_to_send():
    ended = threading.Event()

    def serve(link: Link) -> None:
        ended.wait(60)  # reads nothing

    with connected(serve) as link:
        first = link.ask(b"first", 0.5)
        blocked = threading.Thread(target=lambda: link.ask(b"x" * 100_000_000, 60.0))
        blocked.start()
        with pytest.raises(TimeoutError):
            first.result(30)
        blocked.join(30)
        assert not blocked.is_alive()
        ended.set()


def test_an_answer_that_no_message_waits_for_breaks_the_connection():
    def serve(link: Link) -> None:
        message = link.receive()
        link.send_each([message, b"a surplus"])

    with connected(serve) as link:
        assert link.ask(b"first", 30).result(30) == b"first"
        deadline = time.monotonic() + 30
        while not link.is_broken:
            assert time.monotonic() < deadline, "the next answer would be taken for that of another message"
            time.sleep(0.005)


class Silent:
    """A link whose peer takes everything and never answers."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.sent: list[bytes] = []

    def send(self, message: bytes) -> None:
        self.sent.append(message)

    def wait(self, seconds: float) -> bool:
        return self.ended.wait(0.01)

    def receive_arrived(self) -> list[bytes]:
        raise EOFError("the other side closed the connection")

    def shut_down(self) -> None:
        self.ended.set()

    def close(self) -> None:
        self.ended.set()


def test_an_answer_has_all_of_its_time(monkeypatch):
    now_s, looks = [1_000.0], []
    silent = Silent()
    clock = SimpleNamespace(monotonic=lambda: looks.append(1) or now_s[0])
    monkeypatch.setattr("ekorn.links.pipelined_link.time", clock)

    def look_more():
        seen = len(looks)
        until(lambda: len(looks) > seen + 2)

    link = PipelinedLink(silent, "test-answers")  # type: ignore[arg-type]
    first, second = link.ask(b"first", 5.0), link.ask(b"second", 1.0)
    now_s[0] += 5.0
    look_more()
    assert not first.done() and not link.is_broken, "an answer that is due now, and one behind it"
    now_s[0] += 0.001
    for each in (first, second):
        with pytest.raises(TimeoutError, match="it did not answer in time"):
            each.result(60)
    assert link.is_broken and silent.sent == [b"first", b"second"]


def test_a_message_is_on_its_way_and_cannot_be_cancelled():
    link = PipelinedLink(Silent(), "test-answers")  # type: ignore[arg-type]
    asked = link.ask(b"first", 60.0)
    assert asked.running() and not asked.cancel()
    link.close()
    with pytest.raises(EOFError, match="closed the connection"):
        asked.result(60)


class Failing(Silent):
    """A link that sends nothing from the second message on."""

    def send(self, message: bytes) -> None:
        super().send(message)
        if len(self.sent) > 1:
            raise BrokenPipeError("no more")


def test_a_message_that_cannot_be_sent_fails_and_those_before_it_too():
    link = PipelinedLink(Failing(), "test-answers")  # type: ignore[arg-type]
    first, second = link.ask(b"first", 60.0), link.ask(b"second", 60.0)
    for each in (first, second):
        with pytest.raises(OSError, match="no more"):
            each.result(60)
    assert link.is_broken
    with pytest.raises(OSError, match="no more"):
        link.ask(b"third", 60.0).result(60)
    assert not link._unanswered
