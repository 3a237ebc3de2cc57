"""A source that always has more than a slow operator in another slot takes, and how the job copes with that."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from ekorn.common import WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource
from ekorn.graph.addresses import SubtaskId
from ekorn.program.running.job_client import JobClient
from tests.live_jobs import Tracks, until

RECORD_BYTES = 20_000
SUBTASKS = {"numbers 0": SubtaskId(0, 0), "slow 0": SubtaskId(1, 0), "slow 1": SubtaskId(1, 1)}
STATES = ("busy", "backPressured", "idle")


def build(env: StreamExecutionEnvironment, folder: Path) -> tuple[Tracks, Tracks]:
    """Draw the job; return what counts the records that are read and those that the slow operator has taken."""
    read, taken = Tracks(folder / "read"), Tracks(folder / "taken")

    def slowly(value: Any) -> Any:
        time.sleep(0.002)
        return taken(value)

    source = DataGeneratorSource(lambda n: read((n, bytes(RECORD_BYTES))), 1 << 40)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").set_parallelism(1)
    elsewhere = numbers.partition_custom(lambda key, count: 1, lambda value: value[0])
    elsewhere.map(slowly).name("slow").filter(lambda value: False).name("none").print()
    return read, taken


def watch(client: JobClient, read: Tracks, taken: Tracks) -> dict[str, float]:
    """Let the job run under pressure for a while; return what it holds, and where its time goes."""
    times = ("busyTimeMs", "backPressuredTimeMs")
    until(lambda: taken.count > 600)
    before = _resident_bytes(client)
    until(lambda: taken.count > 2_000)
    # The source tells its times with its marks, and the second one waits for the slow operator to reach the first.
    until(lambda: sum(_of(client.get_metrics(), "numbers", time) for time in times) > 2_000)
    until(lambda: max(_per_second(client)[f"{label} idle"] for label in ("numbers 0", "slow 1")) < 300)
    after, metrics = _resident_bytes(client), client.get_metrics()
    return {
        "ahead": read.count - taken.count,
        "grown_mb": max(b - a for a, b in zip(before, after, strict=True)) / (1 << 20),
        **{f"{label} {time}": _of(metrics, label, time) for label in ("numbers", "slow") for time in times},
        **_per_second(client),
    }


def _per_second(client: JobClient) -> dict[str, float]:
    """Return how many milliseconds of a second each subtask is busy, back-pressured and idle, as REST does."""
    statistics = client._handle.view.statistics  # type: ignore[attr-defined]
    found: dict[str, float] = {}
    for label, subtask in SUBTASKS.items():
        metrics = statistics.metrics.of_subtask(subtask)
        found |= {f"{label} {state}": metrics[f"{state}TimeMsPerSecond"] for state in STATES}
    return found


def _of(metrics: dict[str, Any], label: str, name: str) -> float:
    """Return a time of all subtasks of a chain, found by the name that it begins with."""
    return float(sum(v for k, v in metrics.items() if k.startswith((label, f"Source: {label}")) and _is_total(k, name)))


def _is_total(key: str, name: str) -> bool:
    chain, _, last = key.rpartition(".")
    return last == name and not chain.rpartition(".")[2].isdigit()


def _resident_bytes(client: JobClient) -> list[int]:
    pages = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in client.get_progress().slot_pids]
    return [4096 * count for count in pages]


def verify(found: dict[str, float]) -> None:
    assert found["ahead"] * RECORD_BYTES < 100 << 20, f"queues hold some megabytes, Spark's shuffle some more: {found}"
    assert found["grown_mb"] < 48, f"a source that is not stopped reads gigabytes: {found}"
    assert found["numbers backPressuredTimeMs"] > found["numbers busyTimeMs"], "the source waits"
    assert found["slow busyTimeMs"] > 10 * found["slow backPressuredTimeMs"], "for the operator that works"
    assert found["slow busyTimeMs"] > found["numbers busyTimeMs"]
    for label in SUBTASKS:
        assert sum(found[f"{label} {state}"] for state in STATES) == pytest.approx(1_000, abs=1), found
        assert min(found[f"{label} {state}"] for state in STATES) >= 0, found
    assert found["slow 0 idle"] > 950, f"all records go to the other subtask: {found}"
    assert found["slow 1 busy"] > found["slow 1 idle"], found
    assert found["numbers 0 backPressured"] > found["numbers 0 idle"], f"the source has nothing to wait for: {found}"
