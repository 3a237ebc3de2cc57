"""The log at INFO tells the story of a job: its start, checkpoints, restarts, savepoints and end."""

from __future__ import annotations

import logging
import re
import time
from pathlib import Path

import pytest

from ekorn.common import Configuration, RestartStrategies, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.testing.local_run import on_local_engine
from ekorn.testing.scripted import run_scripted


def test_the_log_tells_the_story_of_a_job(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    failed = tmp_path / "failed"

    def once(number: int) -> int:
        if list(tmp_path.glob("checkpoints/*/chk-*/_metadata")) and not failed.exists():
            failed.touch()
            raise ValueError("once")
        return number

    env = StreamExecutionEnvironment.get_execution_environment(Configuration()).set_parallelism(1)
    env.enable_checkpointing(20).get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / "checkpoints"))
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 1))
    endless = DataGeneratorSource(lambda number: number, None, RateLimiterStrategy.per_second(1000))
    env.from_source(endless, WatermarkStrategy.no_watermarks(), "endless").map(once).name("once")
    with on_local_engine(), caplog.at_level(logging.INFO, "ekorn.driver"):
        client = env.execute_async("story")
        while client.get_progress().restarts == 0:
            time.sleep(0.01)
        client.stop_with_savepoint(False, str(tmp_path)).result()
    lines = [record.getMessage().splitlines()[0] for record in caplog.records if record.levelno >= logging.INFO]
    lines = [line for line in lines if "story" in line]  # and not those of jobs of earlier tests
    checkpoint = r"checkpoint \d+ of job story completed: \d+ bytes in \d+ ms"
    story = [line for number, line in enumerate(lines) if number == 0 or not re.fullmatch(checkpoint, line)]
    assert any(re.fullmatch(checkpoint, line) for line in lines)
    told = [
        r"job 'story' \([0-9a-f]{32}\) starts on this process, without Spark, parallelism 1",
        r"job story restarts in 1 ms: ValueError: once in operator 'once' \(subtask 0\) while processing record \d+",
        rf"job story runs again from checkpoint \d+ in {tmp_path}/checkpoints/[0-9a-f]{{32}}, attempt 2",
        rf"savepoint \d+ of job story completed: {tmp_path}/savepoint-.*",
        r"job 'story' was stopped with a savepoint after [0-9.]+ s: [0-9,]+ records read, \d+ checkpoints?, 1 restart; "
        rf"to continue it, run it with -s {tmp_path}/savepoint-.*",
    ]
    for line, expected in zip([line for line in story if "was aborted" not in line], told, strict=True):
        assert re.fullmatch(expected, line), line


def test_the_job_loop_tells_how_long_the_job_has_run(caplog: pytest.LogCaptureFixture) -> None:
    env = StreamExecutionEnvironment.get_execution_environment(Configuration()).set_parallelism(1)
    with caplog.at_level(logging.INFO, "ekorn.driver"):
        run = run_scripted(env.from_collection([1, 2, 3]).map(lambda number: number))
    runtime_ms = run.handle.wait(0).get_net_runtime()
    assert 0 <= runtime_ms < 1_000, "on a clock that begins at a thousand seconds"
    assert f"finished after {runtime_ms / 1000:.1f} s: 3 records read" in caplog.text
