"""Queries as bytes: a client can make the driver decode plain values, and nothing else."""

import contextlib
import datetime
import decimal
import fractions
import os
import pickle
import struct
import threading
import time
import tracemalloc
import uuid
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekorn.common import Row, RowKind, Types
from ekorn.config.settings.deployment_settings import QueryableSettings
from ekorn.driver.queries.answer_room import ROOM, AnswerRoom
from ekorn.driver.queries.plain_values import DEEPEST, MOST_ITEMS, encode_list
from ekorn.driver.queries.query_routing import PendingValues, StateQueries
from ekorn.driver.queries.query_server import QueryServer
from ekorn.driver.queries.query_wire import (
    MOST_KEYS,
    MOST_QUERY_BYTES,
    Answer,
    decode_answer,
    decode_keys,
    decode_query,
    encode_answer,
    encode_query,
)
from ekorn.errors import QueryError, QueryRefused, StateNotServed, UnknownKey
from ekorn.links.link import connect
from tests.live_jobs import until


@pytest.fixture(autouse=True)
def no_thread_of_a_server_fails(monkeypatch):
    """Fail a test in which a thread that serves a client ends with an exception. Other threads are not the test's."""
    failed, others = [], threading.excepthook

    def note(args):
        if args.thread is not None and args.thread.name == "ekorn-query":
            failed.append(args.exc_value)
        else:
            others(args)

    monkeypatch.setattr(threading, "excepthook", note)
    yield
    assert failed == []


@dataclass(frozen=True)
class Place:
    x: int
    y: int


class Pair(NamedTuple):
    left: str
    right: int


class Harmful:
    def __reduce__(self):
        return os.system, ("touch /tmp/must-not-exist",)


KEYS = st.recursive(
    st.one_of(
        st.text(),
        st.integers(),
        st.floats(allow_nan=False),
        st.booleans(),
        st.binary(),
        st.dates(),
        st.datetimes(),
        st.uuids(),
        st.decimals(allow_nan=False),
        st.fractions(),
        st.timedeltas(),
        st.times(),
        st.complex_numbers(allow_nan=False),
    ),
    lambda inner: st.one_of(st.tuples(inner, inner), st.frozensets(st.integers())),
    max_leaves=4,
)


@given(st.lists(KEYS, max_size=5), st.text(), st.text())
def test_plain_keys_arrive_as_they_were_sent(keys, job, name):
    query = decode_query(encode_query(job, name, keys))
    assert (query.job, query.name) == (job, name)
    found = decode_keys(query.keys, None)
    assert found == keys and [type(key) for key in found] == [type(key) for key in keys]


@pytest.mark.parametrize(
    "key",
    [
        Row(1, "a"),
        Row(n=1),
        Row.of_kind(RowKind.DELETE, 1, None, [2.5, (True, False)]),
        ["a", 1 << 70, -(1 << 63), b"", ()],
        datetime.datetime(2020, 1, 1, 2, 3, 4, 5, datetime.timezone(datetime.timedelta(hours=-3), "there"), fold=1),
        datetime.time(1, 2, tzinfo=datetime.UTC),
        "\ud800",
        datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
        decimal.Decimal("1.5"),
        fractions.Fraction(1, 3),
        uuid.UUID(int=7),
    ],
    ids=repr,
)
def test_rows_and_values_of_the_standard_library_are_plain(key):
    assert decode_keys(decode_query(encode_query("", "", [key])).keys, None) == [key]


@pytest.mark.parametrize("key", [Place(1, 2), Pair("a", 1)], ids=["dataclass", "named tuple"])
def test_a_class_is_decoded_if_it_is_the_declared_type_of_the_keys(key):
    keys = decode_query(encode_query("", "", [key])).keys
    assert decode_keys(keys, Types.POJO(type(key))) == [key]
    nested = decode_query(encode_query("", "", [("a", key)])).keys
    assert decode_keys(nested, Types.TUPLE([Types.STRING(), Types.POJO(type(key))])) == [("a", key)]
    with pytest.raises(QueryRefused, match="declare the class as the key type"):
        decode_keys(keys, Types.LONG())


def test_a_pickle_is_not_decoded():
    harmful = pickle.dumps(Harmful())
    for message in (harmful, pickle.dumps(("job", "name", "live", pickle.dumps(["tea"])))):
        with pytest.raises(QueryRefused, match="not a query of this version"):
            decode_query(message)
    with pytest.raises(QueryRefused):
        decode_keys(harmful, Types.LONG())
    assert not os.path.exists("/tmp/must-not-exist")


@pytest.mark.parametrize(
    "key", [{1}, {"a": 1}, bytearray(b"a"), Harmful(), object, range(3)], ids=lambda key: type(key).__name__
)
def test_a_key_that_is_no_plain_value_is_refused_by_the_client_with_what_can_be_asked(key):
    with pytest.raises(QueryRefused, match=r"a key is None, bool, int.*that key_by\(\) declares as the key type"):
        encode_query("", "", [key])


def nested(levels: int) -> Any:
    key: Any = 1
    for _ in range(levels):
        key = (key, None)
    return key


COUNT = struct.Struct("<I")
MANY = COUNT.pack(0xFFFFFFFF)
HOSTILE = {
    "a list of 4 billion values": b"*" + MANY,
    "4 billion longs": b"q" + MANY,
    "4 billion texts": b"s" + MANY,
    "a text of 4 GB": b"s" + COUNT.pack(1) + MANY + MANY,
    "4 billion columns": b"t" + MANY,
    "no columns": b"t" + COUNT.pack(0),
    "columns of different lengths": b"t" + COUNT.pack(2) + encode_list([1]) + encode_list([1, 2]),
    "deep tuples": (b"*" + COUNT.pack(1) + b"(") * 100_000,
    "deep columns": (b"t" + COUNT.pack(1)) * 100_000,
    "deep rows": (b"*" + COUNT.pack(1) + b"R\0\0") * 100_000,
    "a number of a megabyte": b"*" + COUNT.pack(1) + b"i" + COUNT.pack(1 << 20) + bytes(1 << 20),
    "a decimal of a megabyte": b"*" + COUNT.pack(1) + b"D" + COUNT.pack(1 << 20) + b"9" * (1 << 20),
    "a million Nones": b"*" + COUNT.pack(1_000_000) + b"N" * 1_000_000,
    "items with one hash": b"*" + COUNT.pack(1) + b"{" + encode_list([n * ((1 << 61) - 1) for n in range(-4, 4)] * 64),
    "a fraction by zero": b"*" + COUNT.pack(1) + b"/" + (b"i" + COUNT.pack(1) + b"\0") * 2,
    "a list in a set": b"*" + COUNT.pack(1) + b"{*" + COUNT.pack(1) + b"[" + encode_list([]),
    "a month 13": b"*" + COUNT.pack(1) + b"Y" + struct.pack("<HBBBBBIB", 2020, 13, 1, 0, 0, 0, 0, 0) + b"N",
    "a row kind 9": b"*" + COUNT.pack(1) + b"R\x09\0" + encode_list([]),
    "an unknown tag": b"*" + COUNT.pack(1) + b"?",
    "bytes behind the end": encode_list([1]) + b"x",
}


@pytest.mark.parametrize("keys", HOSTILE.values(), ids=HOSTILE)
def test_hostile_bytes_are_refused_at_once_and_in_little_memory(keys):
    tracemalloc.start()
    before = time.process_time()
    try:
        with pytest.raises(QueryRefused):
            decode_keys(keys, None)
        assert time.process_time() - before < 1.0
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


@given(st.binary(max_size=60))
def test_any_bytes_are_keys_or_refused(keys):
    with contextlib.suppress(QueryRefused):
        assert isinstance(decode_keys(keys, None), list)


def test_no_beginning_of_keys_is_taken_for_all_of_them():
    whole = encode_list(
        ["text", b"bytes", 1, 2.5, ("a", 1), Row(n=1), decimal.Decimal("1.5"), datetime.date(2020, 1, 1)]
    )
    for size in range(len(whole)):
        with pytest.raises(QueryRefused):
            decode_keys(whole[:size], None)


def test_the_driver_counts_levels_itself():
    in_list = [b"*" + COUNT.pack(1) + tag for tag in (b"(", b"[", b"{", b"R\0\0")]
    for level in (*in_list, b"t" + COUNT.pack(1)):
        assert decode_keys(level * (DEEPEST - 1) + encode_list([1]), None)
        with pytest.raises(QueryRefused, match="more than 32 levels"):
            decode_keys(level * (DEEPEST + 1) + encode_list([1]), None)


def test_both_sides_have_the_same_bounds_of_keys():
    assert decode_keys(encode_list([nested(DEEPEST - 1)]), None) == [nested(DEEPEST - 1)]
    with pytest.raises(QueryRefused, match="more than 32 levels"):
        encode_list([nested(DEEPEST + 1)])
    with pytest.raises(QueryRefused, match=f"the maximum is {MOST_ITEMS}: ask for fewer keys"):
        encode_list([(1,) * 51] * 2000)
    with pytest.raises(QueryRefused, match="an int of 1025 bytes"):
        encode_list([1 << 8192])
    with pytest.raises(QueryRefused, match="frozenset of 257 items"):
        encode_list([frozenset(range(257))])
    assert len(decode_keys(encode_list([1] * MOST_KEYS), None)) == MOST_KEYS
    with pytest.raises(QueryRefused, match="2001 keys; the maximum is 2000: use several queries"):
        decode_keys(encode_list([1] * (MOST_KEYS + 1)), None)
    with pytest.raises(QueryRefused, match="the maximum is 8388608: ask for fewer keys per call"):
        encode_query("job", "name", ["a" * MOST_QUERY_BYTES])


class Echo:
    """The states of a job: the value of a key is its repr."""

    def key_type(self, name):
        return None

    def begin(self, name, keys, consistency):
        found = Future()
        found.set_result([repr(key).encode() for key in keys])
        return PendingValues("value", len(keys), [(list(range(len(keys))), found)])


def test_a_driver_refuses_a_frame_above_the_bound_before_it_is_read_and_goes_on_with_other_clients():
    server = QueryServer(QueryableSettings(True, "127.0.0.1", (0,), None, 1000), "a token for a test")
    try:
        server.add("job", cast(StateQueries, Echo()))
        greedy = connect((server.host, server.port), server.token.encode())
        greedy.settimeout(30)
        greedy.send_rest(struct.pack("<Q", MOST_QUERY_BYTES + 1))  # 16 GiB were accepted once
        with pytest.raises(QueryRefused, match="at most 8388608 are accepted: ask for fewer keys"):
            decode_answer(greedy.receive()).raise_error()
        with pytest.raises(EOFError):
            greedy.receive()
        other = connect((server.host, server.port), server.token.encode())
        other.settimeout(30)
        for keys in [b"\x80\x04", *HOSTILE.values()]:
            other.send(encode_query("job", "s", [])[: -len(encode_list([]))] + keys)
            with pytest.raises(QueryRefused):
                decode_answer(other.receive()).raise_error()
        other.send(encode_query("job", "s", ["tea"]))
        assert decode_answer(other.receive()).values == [b"'tea'"]
        other.close()
    finally:
        server.close()


def test_a_driver_with_too_many_clients_tells_the_next_one_and_serves_it_once_another_is_gone():
    server = QueryServer(QueryableSettings(True, "127.0.0.1", (0,), None, 1000), "a token for a test")
    query = encode_query("job", "s", ["tea"])

    def asked():
        link = connect((server.host, server.port), server.token.encode())
        link.settimeout(30)
        link.send(query)
        return link, decode_answer(link.receive())

    try:
        server.add("job", cast(StateQueries, Echo()))
        links = [asked()[0] for _ in range(64)]
        for _ in range(3):
            one_more, answer = asked()
            with pytest.raises(StateNotServed, match="the driver has 64 clients already; shut clients down"):
                answer.raise_error()
            with pytest.raises(EOFError):
                one_more.receive()
        connect((server.host, server.port), server.token.encode()).close()  # one that does not ask
        confused = connect((server.host, server.port), server.token.encode())
        confused.settimeout(30)
        confused.send(b"?")
        with pytest.raises(EOFError):
            confused.receive()
        links.pop().close()
        until(lambda: asked()[1].values == [b"'tea'"])
        for link in links:
            link.send(query)
            assert decode_answer(link.receive()).values == [b"'tea'"]
            link.close()
    finally:
        server.close()


def test_values_of_several_slots_that_are_too_large_together_are_refused_and_let_go_of():
    parts = [Future(), Future(), Future()]
    pending = PendingValues("value", 3, [([place], part) for place, part in enumerate(parts)], most_bytes=100)
    parts[0].set_result([b"a" * 60])
    parts[1].set_result([b"b" * 60])
    assert parts[0].result() == [] == parts[1].result(), "the driver keeps values that it will not send"
    threading.Timer(0.05, parts[2].set_result, ([None],)).start()
    with pytest.raises(QueryRefused, match="the values of 3 of the keys take 120 bytes"):
        pending.result()


def pending(room, *parts):
    places = [([place], part) for place, part in enumerate(parts)]
    return PendingValues("value", len(parts), places, name="s", room=room)


def test_values_that_find_no_room_among_those_that_wait_are_let_go_of():
    room, first, second, third = AnswerRoom(100), Future(), Future(), Future()
    waits, refused = pending(room, first), pending(room, second, third)
    first.set_result([b"a" * 60])
    second.set_result([b"b" * 60])
    third.set_result([b"c"])
    assert second.result() == third.result() == []
    with pytest.raises(StateNotServed, match="state 's' cannot be served now: answers of 100 bytes wait in the driver"):
        refused.result()
    assert room.taken_bytes == 60
    assert waits.result().values == [b"a" * 60] and room.taken_bytes == 0
    again = Future()
    served = pending(room, again)
    again.set_result([b"b" * 60])
    assert served.result().values == [b"b" * 60]


def test_values_that_arrive_after_their_query_has_failed_take_no_room():
    room, fails, late = AnswerRoom(100), Future(), Future()
    query = pending(room, fails, late)
    fails.set_exception(StateNotServed("s", "gone"))
    with pytest.raises(StateNotServed, match="gone"):
        query.result()
    late.set_result([b"a" * 60])
    assert room.taken_bytes == 0


class Large(Echo):
    """Each value has 32 MiB."""

    def begin(self, name, keys, consistency):
        found = Future()
        found.set_result([bytes(32 << 20) for _ in keys])
        return PendingValues("value", len(keys), [(list(range(len(keys))), found)], name=name)


def test_clients_that_do_not_take_their_answers_hold_a_bounded_amount_and_let_go_of_it_with_their_end():
    server = QueryServer(QueryableSettings(True, "127.0.0.1", (0,), None, 1000), "a token for a test")
    try:
        server.add("job", cast(StateQueries, Large()))
        links = [connect((server.host, server.port), server.token.encode()) for _ in range(3)]
        for link in links:
            for number in range(15):
                link.send(encode_query("job", "s", [number]))
        until(lambda: ROOM.taken_bytes > ROOM.most_bytes - (64 << 20))
        other = connect((server.host, server.port), server.token.encode())
        other.settimeout(30)
        other.send(encode_query("job", "s", ["tea"]))
        with pytest.raises(StateNotServed, match="wait in the driver until clients take them"):
            decode_answer(other.receive()).raise_error()
        for link in links:
            link.close()
        until(lambda: ROOM.taken_bytes == 0)
        other.send(encode_query("job", "s", ["tea"]))
        assert decode_answer(other.receive()).values == [bytes(32 << 20)]
        other.close()
    finally:
        server.close()


@given(st.binary(max_size=200))
def test_bytes_that_are_no_query_are_refused(message):
    with pytest.raises(QueryRefused):
        decode_query(message)


@pytest.mark.parametrize("at", [0, 4, 5, 7])
def test_a_header_with_other_bytes_is_refused(at):
    message = bytearray(encode_query("job", "name", []))
    message[at] = 0xFF
    with pytest.raises(QueryRefused, match="not a query"):
        decode_query(bytes(message))


def test_an_answer_has_values_or_the_error():
    answer = decode_answer(encode_answer(Answer("value", [b"1", None])))
    assert answer == Answer("value", [b"1", None])
    answer.raise_error()
    for error in (UnknownKey("counts", "'tea'"), StateNotServed("counts", "it restarts")):
        with pytest.raises(type(error), match="counts"):
            decode_answer(encode_answer(Answer(error=(type(error).__name__, error.args)))).raise_error()
    with pytest.raises(QueryError):
        Answer(error=("SystemExit", ("no",))).raise_error()
