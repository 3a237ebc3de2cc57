"""The driver's connection to a slot for queries: every query ends, whatever the slot answers."""

from __future__ import annotations

import pickle

import pytest

from ekorn.engine.slots.slot_handle import QueryLink
from ekorn.graph.addresses import SubtaskId
from ekorn.links.link import Link
from ekorn.links.listener import Listener
from ekorn.slot_protocol.state_query import StateQuery
from ekorn.slot_protocol.task_messages import ACK

SECRET = b"a secret of this test"
QUERY = StateQuery(SubtaskId(0, 0), 0, "value", [1], timeout_s=30.0)


def test_an_answer_that_cannot_be_read_ends_the_query() -> None:
    def serve(link: Link) -> None:
        link.receive()  # that queries follow
        link.receive()
        link.send(ACK, b"no pickle")

    listener = Listener(("127.0.0.1", 0), SECRET, serve, "test")
    listener.start()
    queries = QueryLink(0, listener.address, SECRET)
    try:
        with pytest.raises(pickle.UnpicklingError):
            queries.ask(QUERY).result(30)
    finally:
        queries.close()
        listener.close()
