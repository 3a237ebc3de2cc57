"""How queries are put into messages and their answers given back, without a driver."""

import pickle
import threading
from typing import Any

import pytest

from ekorn.common import Types
from ekorn.datastream.state import ListStateDescriptor, ValueStateDescriptor
from ekorn.errors import DeploymentError, QueryError, QueryRefused, StateNotServed, UnknownKey
from ekorn.queryable import QueryableStateClient
from ekorn.queryable.query_batches import MESSAGES_AT_ONCE, MOST_KEYS, QueryBatches, Target, _encoded
from ekorn.queryable.state_client import _ManyKeys, _OneKey, _SomeKeys
from ekorn.queryable.state_future import StateFuture

VALUE, LIST = ValueStateDescriptor("v", Types.LONG()), ListStateDescriptor("l", Types.LONG())
TARGET, OTHER = Target("job", "state", "live"), Target("job", "other", "live")


class Asked:
    """The keys of a call."""

    def __init__(self, *keys, target=TARGET):
        self.target, self.keys, self.size = target, keys, len(keys)
        self.failed = []

    def give(self, kind, values):
        raise AssertionError("nothing answers")

    def fail(self, error):
        self.failed.append(error)


def nobody():
    raise ConnectionRefusedError("nobody listens")


@pytest.fixture
def now_s():
    return [100.0]


@pytest.fixture
def batches(now_s):
    """Batches whose thread never starts: the test does what it would."""
    made = QueryBatches(nobody, "a.example:9069", lambda: now_s[0])
    made._thread = threading.Thread(target=lambda: None)
    made._thread.start()
    return made


# ------------------------------------------------------------------------------------------------------- messages


def test_a_message_takes_the_calls_of_one_state_in_their_order(batches):
    calls = [Asked(1), Asked(2, 3), Asked(4, target=OTHER), Asked(5)]
    batches.ask(calls)
    assert batches._next_batch() == calls[:2]
    assert batches._next_batch() == calls[2:3]
    assert batches._next_batch() == calls[3:]


def test_a_message_takes_as_many_keys_as_it_may_and_no_more(batches):
    fits = [Asked(*range(MOST_KEYS - 1)), Asked(0)]
    batches.ask([*fits, Asked(1)])
    assert batches._next_batch() == fits
    assert len(batches._next_batch()) == 1


def test_nothing_is_waited_for_while_there_are_keys_and_no_load(batches):
    assert batches._pause_s() is None and batches._waits_for == "keys"
    batches.ask([Asked(1)])
    assert batches._waits_for is None
    assert batches._pause_s() == 0.0 and batches._waits_for is None


def test_under_load_keys_gather_for_the_rest_of_two_milliseconds(batches, now_s):
    batches._gathers, batches._sent_at_s = True, now_s[0]
    assert batches._pause_s() == pytest.approx(0.002) and batches._waits_for is None
    batches.ask([Asked(1)])
    now_s[0] += 0.0015
    assert batches._pause_s() == pytest.approx(0.0005)
    now_s[0] += 1.0
    assert batches._pause_s() == 0.0
    batches._next_batch()
    assert batches._pause_s() is None and batches._waits_for == "keys"


def test_no_message_is_sent_while_four_are_on_their_way(batches):
    batches.ask([Asked(1)])
    batches._unanswered = MESSAGES_AT_ONCE - 1
    assert batches._pause_s() == 0.0
    batches._unanswered = MESSAGES_AT_ONCE
    assert batches._pause_s() is None and batches._waits_for == "answers"
    batches._answered()
    assert batches._waits_for is None and batches._unanswered == MESSAGES_AT_ONCE - 1
    assert batches._pause_s() == 0.0
    batches.ask([Asked(2)])
    batches._answered()
    assert batches._unanswered == MESSAGES_AT_ONCE - 2


def test_a_call_whose_keys_cannot_be_sent_is_refused_without_the_others():
    good, bad = Asked(1, 2), Asked(object())
    message, rest = _encoded([bad, good])
    assert isinstance(message, QueryRefused) and rest == [good]
    message, rest = _encoded([good, bad])
    assert isinstance(message, bytes) and rest == [bad]
    message, rest = _encoded([good, good, good, bad])
    assert isinstance(message, bytes) and len(rest) == 2, "half of them is tried"


class Odd(tuple):
    """A key that cannot even be looked at."""

    __slots__ = ()

    def __iter__(self):
        raise RuntimeError("on purpose")

    def __len__(self):
        raise RuntimeError("on purpose")


def test_a_key_that_raises_is_refused_with_what_it_raised():
    message, rest = _encoded([Asked(Odd((1,)))])
    assert isinstance(message, QueryRefused) and rest == []


# --------------------------------------------------------------------------------------------------------- the end


def test_a_client_that_is_shut_down_answers_nothing(now_s):
    batches = QueryBatches(nobody, "a.example:9069", lambda: now_s[0])
    batches.close()
    with pytest.raises(QueryError, match="the client is shut down"):
        batches.ask([Asked(1)])


@pytest.mark.parametrize(
    ("error", "raised", "match"),
    [
        (ConnectionRefusedError("no"), StateNotServed, "the driver at a.example:9069 does not answer: no"),
        (EOFError("gone"), StateNotServed, "the driver at a.example:9069 does not answer: gone"),
        (DeploymentError("no proof"), QueryError, "the driver at a.example:9069 does not accept the token: no proof"),
        (RuntimeError("a defect"), RuntimeError, "a defect"),
    ],
)
def test_every_call_of_a_message_that_cannot_be_sent_fails_with_an_error_of_its_own(error, raised, match):
    def fail():
        raise error

    batches = QueryBatches(fail, "a.example:9069")
    calls = [Asked(1), Asked(2)]
    batches._unanswered = 1
    batches._send(list(calls))
    assert batches._unanswered == 0
    (first,), (second,) = (each.failed for each in calls)
    assert first is not second
    with pytest.raises(raised, match=match):
        raise first


def test_what_waits_when_a_client_is_shut_down_fails():
    began, go_on = threading.Event(), threading.Event()

    def connect():
        began.set()
        assert go_on.wait(60)
        raise ConnectionRefusedError("nobody listens")

    batches, first, second = QueryBatches(connect, "a.example:9069"), Asked(1), Asked(2)
    batches.ask([first])
    assert began.wait(60)
    batches.ask([second])
    closing = threading.Thread(target=batches.close)
    with batches._changed:
        batches._closed = True  # as `close` begins
    go_on.set()
    closing.start()
    closing.join(60)
    assert isinstance(first.failed[0], StateNotServed)
    assert [str(error) for error in second.failed] == ["the client is shut down"]


# --------------------------------------------------------------------------------------------------------- answers


def test_a_key_with_a_value_has_a_state_and_one_without_is_an_error():
    found = _OneKey(TARGET, "tea", VALUE)
    assert found.keys == ("tea",) and found.size == 1
    found.give("value", [pickle.dumps(7)])
    state: Any = found.result()
    assert state.value() == 7
    missing = _OneKey(TARGET, "tea", VALUE)
    missing.give("value", [None])
    with pytest.raises(UnknownKey, match="tea"):
        missing.result()


def test_a_descriptor_of_another_kind_is_refused():
    found = _OneKey(TARGET, "tea", LIST)
    found.give("value", [pickle.dumps(7)])
    with pytest.raises(QueryRefused, match="the state is value state, and the descriptor is one of list state"):
        found.result()


def test_an_error_of_the_driver_is_the_outcome():
    one, many = _OneKey(TARGET, "tea", VALUE), _ManyKeys(3, VALUE)
    one.fail(QueryError("no"))
    many.fail(QueryError("no"))
    many.fail(QueryError("of another part"))
    for future in (one, many.future):
        with pytest.raises(QueryError, match=r"^no$"):
            future.result()


def test_the_parts_of_many_keys_come_in_any_order():
    together = _ManyKeys(5, VALUE)
    parts = [_SomeKeys(TARGET, ["a", "b"], 0, together), _SomeKeys(TARGET, ["c", "d", "e"], 2, together)]
    assert [part.size for part in parts] == [2, 3]
    parts[1].give("value", [pickle.dumps(3), None, pickle.dumps(5)])
    assert not together.future.done()
    parts[0].give("value", [None, pickle.dumps(2)])
    found: list[Any] = together.future.result()
    assert [None if state is None else state.value() for state in found] == [None, 2, 3, None, 5]


def test_no_keys_have_no_states():
    assert _ManyKeys(0, VALUE).future.result() == []


def test_a_part_that_cannot_be_read_fails_the_call_once():
    together = _ManyKeys(2, VALUE)
    first, second = _SomeKeys(TARGET, ["a"], 0, together), _SomeKeys(TARGET, ["b"], 1, together)
    first.give("value", [b"no pickle"])
    second.give("value", [b"no pickle"])
    second.fail(QueryError("later"))
    with pytest.raises(pickle.UnpicklingError):
        together.future.result()


# ---------------------------------------------------------------------------------------------------------- client


def test_a_client_speaks_tls_unless_its_driver_is_on_this_machine():
    def address(host, **more):
        return type(QueryableStateClient(host, 7, "t", **more)._address).__name__

    assert [address(host) for host in ("127.0.0.1", "localhost", "a.example")] == ["tuple", "tuple", "EncryptedAddress"]
    assert address("127.0.0.1", encrypted=True) == "EncryptedAddress"
    assert address("a.example", encrypted=False) == "tuple"


def test_queries_of_one_state_share_their_target_and_others_do_not():
    client = QueryableStateClient(token="t")
    first = client._target("j", "s", "live")
    assert client._target("j", "s", "live") is first
    for other in (("k", "s", "live"), ("k", "t", "live"), ("k", "t", "checkpoint"), ("j", "s", "live")):
        assert client._target(*other) == Target(*other)
    with pytest.raises(ValueError, match="consistency is 'live' or 'checkpoint', not 'soon'"):
        client._target("j", "s", "soon")  # type: ignore[arg-type]


def test_a_key_that_does_not_fit_its_type_is_refused_where_it_is_asked_for():
    client = QueryableStateClient(token="t")
    for ask, given in ((client.get_kv_state, "x"), (client.get_kv_states, [1, "x"])):
        with pytest.raises(QueryRefused, match="queryable state 's': a key does not fit its type: "):
            ask("j", "s", given, Types.LONG(), VALUE)


def test_many_keys_are_cut_into_parts_that_fit_a_message(monkeypatch):
    client, asked = QueryableStateClient(token="t"), []
    monkeypatch.setattr(client._batches, "ask", asked.extend)
    client.get_kv_states("j", "s", iter(range(2 * MOST_KEYS + 1)), None, VALUE)
    assert [(part.start, part.size) for part in asked] == [(0, MOST_KEYS), (MOST_KEYS, MOST_KEYS), (2 * MOST_KEYS, 1)]


def test_those_that_wait_for_several_futures_learn_of_errors_and_of_results():
    class Waiter:
        def __init__(self):
            self.results, self.errors = [], []

        def add_result(self, future):
            self.results.append(future)

        def add_exception(self, future):
            self.errors.append(future)

    waiter, good, bad = Waiter(), StateFuture(), StateFuture()
    for each in (good, bad):
        each._waiters.append(waiter)
    good.set_result(1)
    bad.set_exception(ValueError("no"))
    assert (waiter.results, waiter.errors) == ([good], [bad])
