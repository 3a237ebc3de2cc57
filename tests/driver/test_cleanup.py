"""After many checkpoints, some of them failed, every file in the job's directory is referred to by a retained one."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ekorn.common import Configuration, RestartStrategies, WatermarkStrategy
from ekorn.common.job_status import JobStatus
from ekorn.datastream import ExternalizedCheckpointRetention, StreamExecutionEnvironment
from ekorn.storage.local import LocalFiles
from ekorn.testing.scripted import Crash, Script, ScriptedSource, start_scripted
from tests.campaign.damage import orphans

KEYS = 50


def run(directory: Path, checkpoints: int, failed: int, *, incremental: bool, retained: int) -> str:
    """Run a job with many checkpoints, some of which fail, and some restarts; return its id."""
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.incremental", str(incremental).lower())
    configuration.set_string("execution.checkpointing.num-retained", str(retained))
    configuration.set_string("execution.checkpointing.data-inline-threshold", "0")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.enable_checkpointing(10)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(10, 0))
    config = env.get_checkpoint_config()
    config.set_tolerable_checkpoint_failure_number(1_000)
    config.set_checkpoint_storage_dir(str(directory))
    config.set_externalized_checkpoint_retention(ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION)
    chance = random.Random(checkpoints)
    records = [(chance.randrange(KEYS), 1) for _ in range(2 * checkpoints)]
    stream = env.from_source(ScriptedSource([records], [2]), WatermarkStrategy.no_watermarks(), "numbers")
    counted = stream.key_by(lambda r: r[0]).sum(1)
    lost = frozenset(chance.sample(range(1, 2 * checkpoints), failed))
    crashes = [Crash("after-epoch", n) for n in range(checkpoints // 4, checkpoints, checkpoints // 4)]
    script = Script(crashes=crashes, failed_snapshots=lost, deeds={checkpoints: lambda handle: handle.cancel()})
    done = start_scripted(counted, script)
    assert done.status is JobStatus.CANCELED
    assert done.handle.progress().checkpoints_completed > checkpoints // 2
    assert done.handle.progress().checkpoints_failed >= failed // 2
    return str(done.settings.job_id)


def retained_in(directory: Path, job_id: str) -> int:
    return len([n for n in LocalFiles(directory / job_id).list() if n.startswith("chk-")])


@pytest.mark.parametrize("incremental", [True, False], ids=["incremental", "full"])
@pytest.mark.parametrize("retained", [1, 3])
def test_after_a_hundred_checkpoints_only_what_is_needed_is_left(tmp_path: Path, incremental, retained) -> None:
    job_id = run(tmp_path, 100, 10, incremental=incremental, retained=retained)
    assert retained_in(tmp_path, job_id) == retained
    assert orphans(tmp_path / job_id) == []


@pytest.mark.soak
def test_after_a_thousand_checkpoints_only_what_is_needed_is_left(tmp_path: Path) -> None:
    job_id = run(tmp_path, 1_000, 20, incremental=True, retained=2)
    assert retained_in(tmp_path, job_id) == 2
    assert orphans(tmp_path / job_id) == []
