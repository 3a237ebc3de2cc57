"""A job that sums numbers by key, with heartbeats that notice a lost slot soon."""

from __future__ import annotations

from typing import Any

from ekorn.common import Types, WatermarkStrategy
from ekorn.datastream.connectors.datagen import DataGeneratorSource
from tests import live_jobs

RECORDS = 2_000


def environment(parallelism: int = 2, *, heartbeat_ms: int = 100, timeout_ms: int = 3_000) -> Any:
    heartbeat: dict[str, Any] = {"heartbeat__interval": f"{heartbeat_ms} ms", "heartbeat__timeout": f"{timeout_ms} ms"}
    return live_jobs.environment(parallelism=parallelism, restarts=10, **heartbeat)


def sums(env: Any, per_second: float | live_jobs.Held = 1e9):
    """Sum numbers by key. All results differ, and the last result of a key depends on all its records."""
    source = DataGeneratorSource(lambda n: n, RECORDS, live_jobs.limited(per_second))
    return (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
        .map(lambda n: (n % 7, n))
        .key_by(lambda v: v[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )


EXPECTED_TOTALS = {key: sum(range(key, RECORDS, 7)) for key in range(7)}


def totals(records) -> dict[int, int]:
    return {key: max(total for k, total in records if k == key) for key in {k for k, _ in records}}
