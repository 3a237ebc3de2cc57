"""A pipelined connection: many messages under way, answered in their order; without an answer all of them fail."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from ekorn.links.link import Link, connect
from ekorn.links.listener import Listener
from ekorn.links.pipelined_link import PipelinedLink

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
