"""The buffer between a source function and the job is bounded by records and by bytes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from ekorn.functions.watermark_strategy import Watermark
from ekorn.operators.sources.source_function import SourceBuffer
from tests.live_jobs import until

MEGABYTE = 1 << 20


def collecting(buffer: SourceBuffer, records: Iterable[Any]) -> threading.Thread:
    """Collect records on a thread, as a source function does, each with a watermark behind it."""

    def run() -> None:
        for record in records:
            buffer.collect(record)
            buffer.emit_watermark(Watermark(1))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def records_of(items: list[Any]) -> list[Any]:
    return [item[0] for item in items if isinstance(item, tuple)]


@pytest.mark.parametrize("make", [lambda n: bytes(MEGABYTE), lambda n: {"n": n, "data": bytes(MEGABYTE)}])
def test_a_function_that_collects_large_records_waits_at_the_bound_of_bytes(make: Callable[[int], Any]) -> None:
    buffer = SourceBuffer(most_bytes=16 * MEGABYTE)
    thread = collecting(buffer, map(make, range(200)))
    taken, largest = 0, 0
    while taken < 200:
        until(lambda: buffer.is_full or not thread.is_alive())
        records = records_of(buffer.take(wait_s=0.0))
        taken, largest = taken + len(records), max(largest, len(records))
    assert largest <= 40


def test_records_that_become_large_are_noticed() -> None:
    buffer = SourceBuffer(most_bytes=16 * MEGABYTE)
    sizes = [10] * 10_000 + [MEGABYTE] * 1_000
    thread = collecting(buffer, map(bytes, sizes))
    taken, most_bytes = 0, 0
    while taken < len(sizes):
        until(lambda: buffer.is_full or not thread.is_alive())
        records = records_of(buffer.take(wait_s=0.0))
        taken, most_bytes = taken + len(records), max(most_bytes, sum(map(len, records)))
    assert most_bytes <= 300 * MEGABYTE


def test_small_records_are_bounded_by_their_number() -> None:
    buffer = SourceBuffer(most_records=1_000)
    thread = collecting(buffer, range(5_000))
    taken: list[int] = []
    while sum(taken) < 10_000:  # with the watermarks
        until(lambda: buffer.is_full or not thread.is_alive())
        taken.append(len(buffer.take(wait_s=0.0)))
    assert max(taken) == 1_000


def test_a_record_that_cannot_be_pickled_is_collected_all_the_same() -> None:
    buffer = SourceBuffer()
    collecting(buffer, [threading.Lock() for _ in range(100)]).join(60.0)
    assert len(records_of(buffer.take(wait_s=0.0))) == 100
