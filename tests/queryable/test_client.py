"""The client of queryable state against a driver of the test, which sees the messages."""

import pickle
import queue
import threading
from concurrent.futures import Future

import pytest

from ekorn.common import Types
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.driver.queries.query_wire import Answer, decode_keys, decode_query, encode_answer
from ekorn.errors import ConfigurationError, QueryRefused
from ekorn.links.link import connect
from ekorn.links.listener import Listener
from ekorn.queryable import QueryableStateClient
from ekorn.queryable.query_batches import MESSAGES_AT_ONCE, QueryBatches, Target
from tests.live_jobs import until

DESCRIPTOR = ValueStateDescriptor("any", Types.LONG())
TOKEN = "a token for a test"


class Driver:
    """Answers with the keys themselves, once `go` is set, and remembers the keys of every message."""

    def __init__(self):
        self.messages = []
        self.go = threading.Event()
        self.asked = threading.Semaphore(0)  # counts messages
        self._unanswered = queue.Queue()
        self._listener = Listener(("127.0.0.1", 0), TOKEN.encode(), self._serve, "test-queries")
        self.host, self.port = self._listener.address[0], int(self._listener.address[1])
        self._listener.start()

    def _serve(self, link):
        threading.Thread(target=self._answer, args=(link,), daemon=True).start()
        while True:
            try:
                message = link.receive()
            except (EOFError, OSError):
                return
            keys = decode_keys(decode_query(message).keys, None)
            self.messages.append(keys)
            self.asked.release()
            self._unanswered.put(keys)

    def _answer(self, link):
        while True:
            keys = self._unanswered.get()
            assert self.go.wait(30)
            link.send(encode_answer(Answer("value", [pickle.dumps(key) for key in keys])))

    def close(self):
        self._listener.close()


@pytest.fixture
def driver():
    found = Driver()
    yield found
    found.close()


@pytest.fixture
def client(driver):
    with QueryableStateClient(driver.host, driver.port, TOKEN) as found:
        yield found
        driver.go.set()


def test_the_keys_of_a_call_travel_together_and_calls_share_a_message_if_they_fit(driver, client):
    def ask(keys):
        return client.get_kv_states("job", "any", keys, None, DESCRIPTOR)

    futures = []
    for number in range(MESSAGES_AT_ONCE):  # they do not wait for each other's answers
        futures.append(ask([number]))
        assert driver.asked.acquire(timeout=30)
    calls = [range(1500), range(1500, 2500), range(2500, 2600), range(2600, 5600)]
    futures += [ask(keys) for keys in calls]
    driver.go.set()
    for future, keys in zip(futures[MESSAGES_AT_ONCE:], calls, strict=True):
        assert [state.value() for state in future.result(30)] == list(keys)
    assert [(keys[0], len(keys)) for keys in driver.messages[MESSAGES_AT_ONCE:]] == [
        (0, 1500),
        (1500, 1100),  # two calls
        (2600, 2000),  # a call with more keys than a message takes
        (4600, 1000),
    ]


def test_calls_whose_keys_fill_a_message_or_cannot_be_sent_go_or_fail_without_the_others(driver, client):
    first = client.get_kv_state("job", "s", 0, None, DESCRIPTOR)
    assert driver.asked.acquire(timeout=30)
    long = ["a" * (3 << 20), "b" * (3 << 20), "c" * (3 << 20)]
    keys = [1, *long, {"a", "set"}, 2, "d" * (9 << 20), 3]
    futures = [client.get_kv_state("job", "s", key, None, DESCRIPTOR) for key in keys]
    driver.go.set()
    assert first.result(30).value() == 0
    for key, future in zip(keys, futures, strict=True):
        if key in (1, 2, 3, *long):
            assert future.result(30).value() == key
        else:
            with pytest.raises(QueryRefused, match=r"cannot be sent|fewer keys per call"):
                future.result(30)


def test_a_query_on_its_way_is_not_cancelled(driver, client):
    one = client.get_kv_state("job", "any", 7, None, DESCRIPTOR)
    many = client.get_kv_states("job", "any", [8], None, DESCRIPTOR)
    assert driver.asked.acquire(timeout=30)
    assert not one.cancel() and not many.cancel()
    driver.go.set()
    assert one.result(30).value() == 7 and [state.value() for state in many.result(30)] == [8]


def test_a_client_that_finds_no_token_fails_every_query(tmp_path, monkeypatch):
    monkeypatch.setenv("EKORN_RUNTIME_DIR", str(tmp_path))
    tmp_path.chmod(0o700)
    with QueryableStateClient(port=9) as client:
        for _ in range(2):
            with pytest.raises(ConfigurationError, match="generated its own token answers queries on port 9"):
                client.get_kv_state("job", "any", 1, None, DESCRIPTOR).result(60)


class OneKey:
    """A call for one key, and its answer."""

    target = Target("job", "any", "live")

    size = 1

    def __init__(self, key):
        self.keys = [key]
        self.value = Future()

    def give(self, kind, values):
        self.value.set_result(pickle.loads(values[0]))

    def fail(self, error):
        self.value.set_exception(error)


class Calls:
    """Asks for one key a call, with a clock that stands still until the test moves it."""

    def __init__(self, driver):
        self.now_s = 100.0
        self._batches = QueryBatches(
            lambda: connect((driver.host, driver.port), TOKEN.encode()), "the test", lambda: self.now_s
        )

    def ask(self, key):
        asked = OneKey(key)
        self._batches.ask([asked])
        return asked.value

    def close(self):
        self._batches.close()


@pytest.fixture
def calls(driver):
    found = Calls(driver)
    yield found
    driver.go.set()
    found.close()


def test_keys_that_are_asked_for_before_the_last_answer_gather_for_two_milliseconds(driver, calls):
    answers = [calls.ask(0)]
    assert driver.asked.acquire(timeout=30)
    answers.append(calls.ask(1))  # the first one that does not wait for an answer: nothing tells yet that more come
    assert driver.asked.acquire(timeout=30)
    for key in range(2, 5):
        answers.append(calls.ask(key))
        assert not driver.asked.acquire(timeout=0.05), "no time has passed since the last message"
    calls.now_s += 0.002
    assert driver.asked.acquire(timeout=30)
    driver.go.set()
    assert [answer.result(30) for answer in answers] == [0, 1, 2, 3, 4]
    assert driver.messages == [[0], [1], [2, 3, 4]]


def test_keys_and_answers_wake_the_thread_of_the_client_only_if_it_waits_for_them(driver, calls):
    waking, woken = calls._batches._changed.notify, []
    calls._batches._changed.notify = lambda: woken.append(waking())
    driver.go.set()
    assert calls.ask(0).result(30) == 0  # starts the thread, which may not wait yet
    until(lambda: calls._batches._waits_for == "keys")
    woken.clear()
    driver.go.clear()
    answers = [calls.ask(1)]
    assert driver.asked.acquire(timeout=30) and driver.asked.acquire(timeout=30)
    until(lambda: calls._batches._waits_for == "keys")
    answers.append(calls.ask(2))
    assert driver.asked.acquire(timeout=30)
    assert len(woken) == 2
    answers += [calls.ask(key) for key in range(3, 6)]  # they gather until two milliseconds have passed
    driver.go.set()
    assert [answer.result(30) for answer in answers[:2]] == [1, 2]
    assert len(woken) == 2
    calls.now_s += 0.002
    assert [answer.result(30) for answer in answers[2:]] == [3, 4, 5]


def test_a_caller_that_waits_for_each_answer_is_not_held_up(driver, calls):
    driver.go.set()
    assert [calls.ask(key).result(30) for key in range(20)] == list(range(20)), "although no time passes"
    assert driver.messages == [[key] for key in range(20)]
