"""Queries of state on their connection: answered by user code in its pauses, or by the thread of the connection."""

from __future__ import annotations

import pickle
import queue
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from ekorn.engine.slots.link_certificate import made_by_package
from ekorn.graph.addresses import SubtaskId
from ekorn.links.link import Link, connect
from ekorn.links.listener import Listener
from ekorn.slot.query_connection import QueryConnection
from ekorn.slot.user_code_lock import UserCodeLock
from ekorn.slot_protocol.state_query import Found, StateQuery
from ekorn.slot_protocol.task_messages import ACK
from ekorn.types.by_value import dumps

CHECKPOINT: Any = "the key group of a checkpoint"


def query(*keys: int, checkpoint: Any = None) -> StateQuery:
    return StateQuery(SubtaskId(0, 0), 0, "count", list(keys), 30.0, checkpoint)


class Host:
    """Answers each key with bytes of its number, and notes who looked up how many keys."""

    def __init__(self) -> None:
        self.user_code = UserCodeLock()
        self.value_bytes = 0
        self.looked_up: list[tuple[str, int, int]] = []  # how, by which thread, and how many keys

    def look_up_all(self, queries: Sequence[StateQuery]) -> list[Found]:
        found: list[Found] = []
        assert self.user_code.at_pause(lambda: found.extend(self._look_up("all", queries)), 30)
        return found

    def look_up_now(self, queries: Sequence[StateQuery]) -> list[Found]:
        return self._look_up("now", queries)

    def _look_up(self, how: str, queries: Sequence[StateQuery]) -> list[Found]:
        self.looked_up.append((how, threading.get_ident(), sum(len(each.keys) for each in queries)))
        return [[str(key).encode() + b"x" * self.value_bytes for key in each.keys] for each in queries]


class Served:
    """A host, its connection with a driver, and what `serve` has raised."""

    def __init__(self, ours: Link, theirs: Link) -> None:
        self.driver = theirs
        self.driver.settimeout(30)
        self.host = Host()
        self.ended: list[Exception] = []
        self.thread = threading.Thread(target=self._serve, args=(QueryConnection(ours, self.host),), daemon=True)

    def _serve(self, connection: QueryConnection) -> None:
        try:
            connection.serve()
        except (EOFError, OSError) as error:
            self.ended.append(error)

    def expected(self) -> None:
        """Start the thread, and wait until queries are expected."""
        self.thread.start()
        while not self.host.user_code.give_way():
            threading.Event().wait(0.001)

    def ask(self, *queries: StateQuery) -> None:
        self.driver.send_each([dumps(each) for each in queries])

    def answer(self) -> list[bytes]:
        message = self.driver.receive()
        assert message[:1] == ACK
        found: list[bytes] = pickle.loads(message[1:])
        return found

    def pause_until_answered(self, answers: int) -> list[list[bytes]]:
        """Make pauses until that many answers have come."""
        found: list[list[bytes]] = []
        while len(found) < answers:
            self.host.user_code.give_way()
            while self.driver.wait(0.0) and len(found) < answers:
                found.append(self.answer())
        return found


@pytest.fixture
def served() -> Iterator[Served]:
    ours, theirs = socket.socketpair()
    made = Served(Link(ours), Link(theirs))
    yield made
    made.driver.close()
    if made.thread.ident is not None:
        made.thread.join(30)


def test_user_code_answers_in_its_pauses_by_itself(served: Served) -> None:
    with served.host.user_code:
        served.expected()
        for number in range(50):
            served.ask(query(number), query(number + 1, number + 2))
            assert served.pause_until_answered(2) == [
                [b"%d" % number],
                [b"%d" % (number + 1), b"%d" % (number + 2)],
            ]
    mine = [each for each in served.host.looked_up if each[:2] == ("now", threading.get_ident())]
    assert len(mine) >= 25, "the connection's thread may have been on its way for some of them"


def test_the_connections_thread_answers_while_user_code_is_not_running(served: Served) -> None:
    served.thread.start()
    served.ask(query(1), query(2))
    assert [served.answer(), served.answer()] == [[b"1"], [b"2"]]
    assert {how for how, _, _ in served.host.looked_up} == {"all"}


def test_the_release_of_the_lock_leaves_no_query_behind(served: Served) -> None:
    with served.host.user_code:
        served.expected()
        for _ in range(3):
            served.host.user_code.give_way()
        served.ask(query(7))
    assert served.answer() == [b"7"], "user code has paused before it came, and does not pause any more"


def test_a_pause_never_waits_for_a_driver_that_takes_no_answers(served: Served) -> None:
    served.host.value_bytes = 3_000_000
    with served.host.user_code:
        served.expected()
        served.ask(*(query(number) for number in range(5)))
        for _ in range(1000):
            served.host.user_code.give_way()  # a driver that reads nothing would stop it for good
    assert [served.answer()[0][:1] for _ in range(5)] == [b"0", b"1", b"2", b"3", b"4"]


def test_a_query_of_a_checkpoint_is_not_answered_in_a_pause_and_the_order_stays(served: Served) -> None:
    with served.host.user_code:
        served.expected()
        for _ in range(100):  # both threads take queries, in any order
            served.ask(query(1), query(2, checkpoint=CHECKPOINT), query(3))
            assert served.pause_until_answered(3) == [[b"1"], [b"2"], [b"3"]]
    assert [keys for how, _, keys in served.host.looked_up if how == "all"][:1], "it may read files"


def test_a_pause_looks_up_a_bounded_number_of_keys(served: Served) -> None:
    with served.host.user_code:
        served.expected()
        served.ask(*(query(*range(400)) for _ in range(10)))
        served.pause_until_answered(10)
    assert max(keys for _, _, keys in served.host.looked_up) <= 1000


def test_a_driver_that_is_gone_is_no_error_of_user_code(served: Served) -> None:
    with served.host.user_code:
        served.expected()
        served.driver.close()
        for _ in range(1000):
            served.host.user_code.give_way()
    served.thread.join(30)
    assert len(served.ended) == 1


class CountingLink(Link):
    """Counts how often it was asked for messages."""

    looks = 0

    def take_arrived(self) -> list[bytes]:
        self.looks += 1
        return super().take_arrived()


def test_a_pause_that_comes_to_its_readers_after_the_end_leaves_the_connection_alone() -> None:
    answers: list[Callable[[], None]] = []

    class RememberingTurn(UserCodeLock):
        """Keeps what it calls in pauses, as a pause does that began before the reader was taken off the list."""

        @contextmanager
        def expecting_readers(self, answer: Any = None, freed: Any = None) -> Iterator[None]:
            answers.append(answer)
            with super().expecting_readers(answer, freed):
                yield

    ours, theirs = socket.socketpair()
    link = CountingLink(ours)
    served = Served(link, Link(theirs))
    served.host.user_code = RememberingTurn()
    served.thread.start()
    served.driver.close()
    served.thread.join(30)
    assert len(served.ended) == 1
    looks = link.looks
    answers[0]()
    assert link.looks == looks, "its caller closes the connection, and the system may give its number to another file"
    link.close()


def test_the_connections_thread_does_everything_on_an_encrypted_connection() -> None:
    certificate, admitted = made_by_package(), queue.SimpleQueue[Link]()
    listener = Listener(("127.0.0.1", 0), b"s" * 32, admitted.put, "test", certificate)
    listener.start()
    driver = connect(listener.address, b"s" * 32)
    served = Served(admitted.get(timeout=30), driver)
    served.expected()
    with served.host.user_code:
        served.ask(*(query(number) for number in range(20)))
        assert served.pause_until_answered(20) == [[b"%d" % number] for number in range(20)]
    assert {how for how, _, _ in served.host.looked_up} == {"all"}
    driver.close()
    served.thread.join(30)
    listener.close()
    assert len(served.ended) == 1
