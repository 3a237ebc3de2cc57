"""Whole programs on the local engine: no JVM, no processes, the same runtime.

with on_local_engine():
    env.execute()

assert collect_locally(env.from_collection([1, 2]).map(lambda x: x + 1)) == [2, 3]
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tamias.driver import submit
from tamias.engine.local_engine import LocalEngine
from tamias.program.data_stream import DataStream


@contextmanager
def on_local_engine() -> Iterator[None]:
    """Inside, every `execute`, `execute_async` and `execute_and_collect` runs in this process."""
    before = submit.default_engine
    submit.default_engine = lambda settings: LocalEngine
    try:
        yield
    finally:
        submit.default_engine = before


def collect_locally(stream: DataStream) -> list[Any]:
    """Run a program on the local engine and give what the stream holds."""
    with on_local_engine(), stream.execute_and_collect() as records:
        return list(records)
