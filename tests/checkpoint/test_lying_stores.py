"""Object stores that lie: answers that are cut off, objects that are there and not found, puts that were never done."""

from __future__ import annotations

import fnmatch
import logging
import random
from typing import Any

import pytest

from ekorn.checkpoint.checkpoint_choice import choose_checkpoint
from ekorn.errors import NoReadableCheckpoint
from ekorn.storage.remote import RemoteFiles
from tests.checkpoint.checkpoint_values import graph, metadata, opened, vertex
from tests.object_store import FakeObjects, object_store

JOB_GRAPH = graph(vertex(0, "source", source=True), vertex(1, "count"))


class Liar(FakeObjects):
    """Lies about the objects whose names match a pattern, a number of times for each."""

    def __init__(self, objects: dict[str, bytes] | None = None, **more: Any) -> None:
        super().__init__(objects, **more)
        self.pattern, self.times, self.lie = "", 0, ""
        self.told: dict[str, int] = {}

    def tell(self, lie: str, pattern: str, times: int = 1) -> None:
        self.lie, self.pattern, self.times = lie, pattern, times

    def _lies(self, lie: str, path: str) -> bool:
        if lie != self.lie or not fnmatch.fnmatch(path, self.pattern) or self.told.get(path, 0) >= self.times:
            return False
        self.told[path] = self.told.get(path, 0) + 1
        return True

    def get(self, path: str) -> bytes:
        data: bytes = super().get(path)
        if self._lies("not found", path):
            raise FileNotFoundError(path)
        if self._lies("mixed", path):
            return data[:-1] + bytes([data[-1] ^ 1])
        return data[: len(data) // 2] if self._lies("cut off", path) else data

    def put(self, path: str, data: bytes) -> None:
        if not self._lies("lost put", path):
            super().put(path, data[: len(data) // 2] if self._lies("cut-off put", path) else data)


def after_two_checkpoints(liar: Liar, lie: str = "", pattern: str = "") -> RemoteFiles:
    """Let a driver complete two checkpoints, and be lied to during the second one."""
    store = object_store(liar)
    directory = opened(store)
    directory.start_from(None)
    directory.complete(metadata(JOB_GRAPH, directory.files, 1, attempt="1.0"))
    liar.tell(lie, pattern)
    directory.complete(metadata(JOB_GRAPH, directory.files, 2, attempt="1.0"))
    directory.release()
    return store


@pytest.mark.parametrize("lie", ["cut off", "mixed", "not found"])
@pytest.mark.parametrize("pattern", ["*/chk-2/_metadata", "*/shared/*", "*/chk-2/[!_]*"])
def test_an_answer_that_was_a_lie_once_does_not_cost_a_good_checkpoint(lie: str, pattern: str) -> None:
    liar = Liar()
    directory = opened(after_two_checkpoints(liar), name="two")
    liar.tell(lie, pattern)
    chosen = choose_checkpoint(directory)
    assert liar.told, "the store has lied"
    assert chosen is not None and chosen.restore_point.metadata.checkpoint_id == 2 and not chosen.passed_over


@pytest.mark.parametrize("lie", ["cut off", "mixed"])
def test_an_answer_that_stays_a_lie_costs_the_checkpoint_and_an_error(
    lie: str, caplog: pytest.LogCaptureFixture
) -> None:
    liar = Liar()
    directory = opened(after_two_checkpoints(liar), name="two")
    liar.tell(lie, "*/chk-2/*", times=1_000)
    with caplog.at_level(logging.ERROR):
        chosen = choose_checkpoint(directory)
    assert chosen is not None and chosen.restore_point.metadata.checkpoint_id == 1
    assert "restoring the older checkpoint 1 instead of 2: output" in caplog.text


@pytest.mark.parametrize("lie", ["lost put", "cut-off put"])
@pytest.mark.parametrize("pattern", ["*/chk-2/_metadata", "*/chk-2/[!_]*", "*/shared/*"])
def test_a_put_that_was_answered_and_not_done_is_noticed_before_a_record_is_processed(
    lie: str, pattern: str, caplog: pytest.LogCaptureFixture
) -> None:
    liar = Liar()
    store = after_two_checkpoints(liar, lie, pattern)
    assert liar.told, "the store has lied"
    with caplog.at_level(logging.ERROR):
        chosen = choose_checkpoint(opened(store, name="two"))
    assert chosen is not None and chosen.restore_point.metadata.checkpoint_id == 1
    assert "checkpoint 2 of fake://bucket/dir" in caplog.text and "may be written again" in caplog.text


def test_a_lost_put_of_the_only_checkpoint_does_not_make_the_job_begin_anew_in_silence() -> None:
    liar = Liar()
    store = object_store(liar)
    directory = opened(store)
    directory.start_from(None)
    liar.tell("lost put", "*/chk-1/_metadata")
    directory.complete(metadata(JOB_GRAPH, directory.files, 1, attempt="1.0"))
    directory.release()
    with pytest.raises(NoReadableCheckpoint, match=r"checkpoint 1: .*no such file"):
        choose_checkpoint(opened(store, name="two"))


@pytest.mark.parametrize("seed", range(20))
def test_a_stale_listing_hides_no_checkpoint(seed: int) -> None:
    objects: dict[str, bytes] = {}
    after_two_checkpoints(Liar(objects))
    stale = object_store(Liar(objects, stale=random.Random(seed)))
    chosen = choose_checkpoint(opened(stale, name="two"))
    assert chosen is not None and chosen.restore_point.metadata.checkpoint_id == 2
