"""The client of queryable state against a driver of the test, which sees the messages."""

import pickle
import threading

import pytest

from tamias.common import Types
from tamias.datastream.state import ValueStateDescriptor
from tamias.driver.query_wire import Answer, decode_keys, decode_query, encode_answer
from tamias.queryable import QueryableStateClient
from tamias.slot.listener import Listener

DESCRIPTOR = ValueStateDescriptor("any", Types.LONG())


class Driver:
    """Answers with the keys themselves, once `go` is set, and remembers the keys of every message."""

    def __init__(self):
        self.messages = []
        self.go = threading.Event()
        self.asked = threading.Event()
        self._listener = Listener(("127.0.0.1", 0), b"a token for a test", self._serve, "test-queries")
        self.host, self.port = self._listener.address[0], int(self._listener.address[1])
        self._listener.start()

    def _serve(self, link):
        while True:
            try:
                message = link.receive()
            except (EOFError, OSError):
                return
            keys = decode_keys(decode_query(message).keys, None)
            self.messages.append(keys)
            self.asked.set()
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
    with QueryableStateClient(driver.host, driver.port, "a token for a test") as found:
        yield found
        driver.go.set()


def test_the_keys_of_a_call_travel_together_and_calls_share_a_message_if_they_fit(driver, client):
    def ask(keys):
        return client.get_kv_states("job", "any", keys, None, DESCRIPTOR)

    futures = [ask([-1])]
    assert driver.asked.wait(30)
    calls = [range(1500), range(1500, 2500), range(2500, 2600), range(2600, 5600)]
    futures += [ask(keys) for keys in calls]
    driver.go.set()
    for future, keys in zip(futures[1:], calls, strict=True):
        assert [state.value() for state in future.result(30)] == list(keys)
    assert [(keys[0], len(keys)) for keys in driver.messages[1:]] == [
        (0, 1500),
        (1500, 1100),  # two calls
        (2600, 2000),  # a call with more keys than a message takes
        (4600, 1000),
    ]


def test_a_query_on_its_way_is_not_cancelled(driver, client):
    one = client.get_kv_state("job", "any", 7, None, DESCRIPTOR)
    many = client.get_kv_states("job", "any", [8], None, DESCRIPTOR)
    assert driver.asked.wait(30)
    assert not one.cancel() and not many.cancel()
    driver.go.set()
    assert one.result(30).value() == 7 and [state.value() for state in many.result(30)] == [8]
