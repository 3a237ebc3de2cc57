"""The answers to the queries of one client: in their order, sent by whoever completes them, and never by waiting."""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from ekorn.driver.queries.query_answers import AnswersInOrder
from ekorn.driver.queries.query_routing import PendingValues
from ekorn.driver.queries.query_wire import Answer, decode_answer
from ekorn.engine.slots.link_certificate import made_by_package
from ekorn.errors import StateNotServed
from ekorn.links.link import Link, connect
from ekorn.links.listener import Listener
from tests.live_jobs import until

MOST = 4
Part = Future[list[bytes | None]]


def pending(*parts: Part) -> PendingValues:
    """A query of one key for each part."""
    return PendingValues("value", len(parts), [([place], part) for place, part in enumerate(parts)])


class Client:
    """A client, and the answers that the driver sends it."""

    def __init__(self, ours: Link, theirs: Link) -> None:
        self.link = theirs
        self.link.settimeout(30)
        self.answers = AnswersInOrder(ours, "test-answers", MOST)

    def values(self) -> list[bytes | None]:
        return decode_answer(self.link.receive()).values

    def has_thread(self) -> bool:
        """Whether a thread of the connection runs."""
        thread = self.answers._thread
        return thread is not None and thread.is_alive()


@pytest.fixture
def client() -> Iterator[Client]:
    ours, theirs = socket.socketpair()
    made = Client(Link(ours), Link(theirs))
    yield made
    made.link.close()
    threading.Thread(target=made.answers.end, daemon=True).start()  # waits for answers, if the test has failed


def test_answers_leave_in_the_order_of_their_queries_and_no_thread_is_needed(client: Client) -> None:
    first, second = Part(), Part()
    client.answers.add(pending(first))
    client.answers.add(pending(second))
    client.answers.add(Answer(error=("UnknownJob", ("job", "none"))))
    second.set_result([b"2"])
    assert not client.link.wait(0.0), "the answer to the first query is missing"
    first.set_result([b"1"])
    assert [client.values(), client.values()] == [[b"1"], [b"2"]]
    assert decode_answer(client.link.receive()).error == ("UnknownJob", ("job", "none"))
    assert not client.has_thread()


def test_a_query_of_several_slots_is_answered_when_the_last_of_them_has_answered(client: Client) -> None:
    parts = [Part(), Part()]
    client.answers.add(pending(*parts))
    parts[1].set_result([b"b"])
    assert not client.link.wait(0.0)
    parts[0].set_result([b"a"])
    assert client.values() == [b"a", b"b"]


def test_a_query_without_keys_and_one_that_a_slot_refuses_are_answered(client: Client) -> None:
    refused = Part()
    client.answers.add(pending())
    client.answers.add(pending(refused))
    refused.set_exception(StateNotServed("count", "the job restarts"))
    assert client.values() == []
    assert decode_answer(client.link.receive()).error == ("StateNotServed", ("count", "the job restarts"))


def test_a_client_that_does_not_read_holds_up_nobody_who_completes_its_answers(client: Client) -> None:
    parts = [Part() for _ in range(3)]
    for part in parts:
        client.answers.add(pending(part))
    for number, part in enumerate(parts):
        part.set_result([b"%d" % number * 4_000_000])  # returns, although the connection takes less
    assert [client.values() for _ in parts] == [[b"%d" % number * 4_000_000] for number in range(3)]
    last = Part()
    client.answers.add(pending(last))
    last.set_result([b"again at once"])
    assert client.values() == [b"again at once"]


def test_further_queries_wait_while_too_many_have_no_answer(client: Client) -> None:
    parts = [Part() for _ in range(MOST + 1)]
    for part in parts[:MOST]:
        client.answers.add(pending(part))
    added = threading.Event()
    adding = threading.Thread(target=lambda: (client.answers.add(pending(parts[MOST])), added.set()), daemon=True)
    adding.start()
    parts[1].set_result([b"1"])
    assert not added.wait(0.05), "the first one has no answer yet"
    parts[0].set_result([b"0"])
    assert added.wait(30)
    for number, part in enumerate(parts[2:], start=2):
        part.set_result([b"%d" % number])
    assert [client.values() for _ in parts] == [[b"%d" % number] for number in range(MOST + 1)]


def test_a_client_that_is_gone_leaves_no_query_and_no_thread_behind(client: Client) -> None:
    parts = [Part() for _ in range(MOST)]
    for part in parts:
        client.answers.add(pending(part))
    client.link.close()
    ended = threading.Thread(target=client.answers.end, daemon=True)
    ended.start()
    for part in parts:
        part.set_result([b"x" * 4_000_000])
    ended.join(30)
    assert not ended.is_alive()
    until(lambda: not client.has_thread())


def test_answers_leave_on_an_encrypted_connection() -> None:
    admitted: queue.SimpleQueue[Link] = queue.SimpleQueue()
    listener = Listener(("127.0.0.1", 0), b"s" * 32, admitted.put, "test", made_by_package())
    listener.start()
    theirs = connect(listener.address, b"s" * 32)
    client = Client(admitted.get(timeout=30), theirs)
    for number in range(20):
        part = Part()
        client.answers.add(pending(part))
        part.set_result([b"%d" % number])
        assert client.values() == [b"%d" % number]
    client.answers.end()
    theirs.close()
    listener.close()
