"""A job is rescaled many times, also with checkpoints in flight and with crashes in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ekorn.common import JobID, WatermarkStrategy
from ekorn.datastream import DataStream
from ekorn.testing.scripted import Crash, DriverDied, Point, Script, ScriptedSource, run_scripted, start_scripted
from tests.live_jobs import environment, expected_tally, tallied

KEYS, RECORDS = 11, 700
LIVES = (1, 2, 5, 3, 8, 1, 16, 4)
MAXIMUM = 16


def job(directory: Path, parallelism: int, backend: str) -> DataStream:
    env = environment(directory, parallelism=parallelism, restarts=9, state__backend__type=backend)
    env.set_max_parallelism(MAXIMUM)
    source = ScriptedSource([list(range(RECORDS))], [10])
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers").set_parallelism(1)
    return tallied(numbers, KEYS)


@pytest.mark.parametrize(
    ("backend", "trouble"),
    [
        ("hashmap", "none"),
        ("hashmap", "checkpoints under way"),
        ("hashmap", "crashes"),
        pytest.param("rocksdb", "crashes", marks=pytest.mark.soak),
    ],
)
def test_stopped_and_started_at_other_parallelisms_every_result_comes_once(
    backend: str, trouble: str, tmp_path: Path
) -> None:
    found: list[Any] = []
    path: str | None = None
    for number, parallelism in enumerate(LIVES):
        asked: list[Any] = []

        def stop(handle: Any, asked: list[Any] = asked) -> None:
            asked.append(handle.request_savepoint(str(tmp_path / "savepoints"), then="stop"))

        script = Script(
            deeds={} if number == len(LIVES) - 1 else {4: stop},
            late_snapshots={1: 6} if trouble == "checkpoints under way" else {},
            crashes=[Crash("in-epoch", 3), Crash("after-deploy", 2)] if trouble == "crashes" else [],
        )
        settings = {} if path is None else {"restore_path": path}
        found += run_scripted(job(tmp_path / str(number), parallelism, backend), script, **settings).records
        path = asked[0].result(0) if asked else None
    assert sorted(found) == sorted(expected_tally(RECORDS, KEYS))


@pytest.mark.parametrize("backend", ["hashmap", pytest.param("rocksdb", marks=pytest.mark.soak)])
def test_a_driver_that_dies_anywhere_goes_on_at_another_parallelism(backend: str, tmp_path: Path) -> None:
    """Restore from checkpoints, without a savepoint: only the output after the last checkpoint is repeated."""
    job_id = JobID.generate()
    points: list[Point] = ["after-epoch", "in-notify", "before-deploy", "in-epoch", "before-notify"]
    points += ["after-deploy", "after-notify"]
    for number, (parallelism, point) in enumerate(zip(LIVES, points, strict=False)):
        count = 1 if "deploy" in point else 4 + number
        with pytest.raises(DriverDied):
            start_scripted(
                job(tmp_path, parallelism, backend),
                Script(crashes=[Crash(point, count)], driver_dies=True),
                job_id=job_id,
            )
    last = run_scripted(job(tmp_path, LIVES[-1], backend), job_id=job_id)
    expected = expected_tally(RECORDS, KEYS)
    assert 0 < len(last.records) < RECORDS
    assert sorted(last.records) == sorted(expected[-len(last.records) :])
