"""A Spark task that runs twice: its subtask runs once, and both tasks get the same answer."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ekorn.links.link import Link, connect
from ekorn.operators.epoch import EpochOrder
from ekorn.slot.slot_server import SlotServer
from ekorn.slot_protocol.deployment_codec import encode_deployment
from ekorn.slot_protocol.messages import Deploy
from ekorn.slot_protocol.slot_config import SlotConfig
from ekorn.slot_protocol.task_messages import ACK, FAILED, RunEpoch
from ekorn.types.by_value import dumps
from tests.slot.small_job import SOURCE, SUM, deployment, graph, summing

SECRET = b"s" * 32


@pytest.fixture(params=[64 << 20, 0], ids=["in memory", "on disk"])
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[SlotServer]:
    started = SlotServer(SlotConfig(0, str(tmp_path / "socket"), SECRET, str(tmp_path), []))
    started.start()
    control = connect(started.address, SECRET)
    drawn = graph(summing)
    drawn = replace(drawn, settings=replace(drawn.settings, slot_memory_bytes=request.param))
    control.send(dumps(Deploy(encode_deployment(deployment(drawn)), [SOURCE, SUM])))
    assert pickle.loads(control.receive()).error is None
    yield started
    started.stop()


def messages(link: Link, number: int, *, repeatable: bool = True) -> list[bytes]:
    """Ask for an epoch of the source; return all messages of the answer."""
    link.send(dumps(RunEpoch(SOURCE, 0, EpochOrder(number), repeatable)))
    link.send(b"")
    found = [link.receive()]
    while found[-1][:1] not in (ACK, FAILED):
        found.append(link.receive())
    return found


def test_a_second_task_gets_the_answer_of_the_first(server: SlotServer) -> None:
    first, second = (connect(server.address, SECRET) for _ in range(2))
    answer = messages(first, 0)
    assert answer[-1][:1] == ACK
    assert messages(second, 0) == answer


def test_a_second_task_gets_the_answer_although_the_first_takes_nothing(server: SlotServer) -> None:
    first, second = (connect(server.address, SECRET) for _ in range(2))
    first.send(dumps(RunEpoch(SOURCE, 0, EpochOrder(0), repeatable=True)))
    first.send(b"")  # and then the task hangs
    assert messages(second, 0)[-1][:1] == ACK


def test_blobs_reach_the_next_subtask_wherever_they_wait(server: SlotServer) -> None:
    link = connect(server.address, SECRET)
    *blobs, _ = messages(link, 0)
    for _ in range(2):  # the second task gets the kept answer
        link.send(dumps(RunEpoch(SUM, 0, EpochOrder(0), repeatable=True)))
        for blob in blobs:
            link.send(blob)
        link.send(b"")
        answer = link.receive()
        assert answer[:1] == ACK
        assert pickle.loads(answer[1:]).lines == ["1", "2", "4"]


def test_a_late_task_of_an_older_epoch_is_refused_and_changes_nothing(server: SlotServer) -> None:
    link, late = (connect(server.address, SECRET) for _ in range(2))
    messages(link, 0)
    answer = messages(link, 1)
    assert messages(late, 0)[-1][:1] == FAILED
    assert messages(late, 1) == answer


def test_a_task_that_spark_tries_once_gets_no_second_answer(server: SlotServer) -> None:
    link = connect(server.address, SECRET)
    messages(link, 0, repeatable=False)
    assert messages(link, 0, repeatable=False)[-1][:1] == FAILED


@pytest.mark.parametrize("repeatable", [True, False])
@pytest.mark.parametrize("crosses", [True, False])
def test_an_acknowledgement_tells_the_bytes_that_crossed_hosts(tmp_path: Path, repeatable: bool, crosses: bool) -> None:
    # A connection to 127.0.0.2 comes from 127.0.0.1, as one from another host would come from another address.
    server = SlotServer(SlotConfig(0, ("127.0.0.2" if crosses else "127.0.0.1", 0), SECRET, str(tmp_path), []))
    server.start()
    link = connect(server.address, SECRET)
    link.send(dumps(Deploy(encode_deployment(deployment(graph(summing))), [SOURCE, SUM])))
    assert pickle.loads(link.receive()).error is None
    *blobs, ack = messages(link, 0, repeatable=repeatable)
    sent = sum(len(blob) for blob in blobs)
    assert sent > 0
    assert pickle.loads(ack[1:]).crossed_bytes == (sent if crosses else 0)
    link.send(dumps(RunEpoch(SUM, 0, EpochOrder(0), repeatable=repeatable)))
    for blob in (*blobs, b""):
        link.send(blob)
    assert pickle.loads(link.receive()[1:]).crossed_bytes == (sent if crosses else 0)
    link.close()
    server.stop()
