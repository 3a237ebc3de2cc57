"""An exception of the user's `snapshot_state` on Spark: the checkpoint fails, and the job goes on as configured."""

from __future__ import annotations

from pathlib import Path

import pytest

from ekorn.common import Configuration, RestartStrategies
from ekorn.datastream import CheckpointedFunction, MapFunction, StreamExecutionEnvironment
from ekorn.errors import JobExecutionError
from tests.driver.submitted_jobs import noted_handles
from tests.live_jobs import expected_tally, generated, tallied

RECORDS = 1_500


class DeclinesTwice(MapFunction, CheckpointedFunction):
    """Passes records on; raises an exception in the first two checkpoints."""

    def map(self, value):
        return value

    def initialize_state(self, context):
        pass

    def snapshot_state(self, context):
        if context.get_checkpoint_id() <= 2:
            raise ValueError(f"no snapshot {context.get_checkpoint_id()}")


def job(folder: Path, tolerable: int):
    env = StreamExecutionEnvironment.get_execution_environment(Configuration()).set_parallelism(2)
    env.enable_checkpointing(300)
    env.set_restart_strategy(RestartStrategies.no_restart())
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(folder))
    env.get_checkpoint_config().set_tolerable_checkpoint_failure_number(tolerable)
    return tallied(generated(env, RECORDS, RECORDS / 4).map(DeclinesTwice()).name("declines").set_parallelism(1), 5)


def test_tolerated_exceptions_cost_checkpoints_and_no_record(tmp_path: Path) -> None:
    with noted_handles() as handles, job(tmp_path, tolerable=2).execute_and_collect("declining") as results:
        found = list(results)
    assert sorted(found) == sorted(expected_tally(RECORDS, 5))
    progress = handles[0].progress()
    assert (progress.restarts, progress.checkpoints_failed) == (0, 2)
    assert progress.checkpoints_completed > 0


def test_without_tolerance_the_exception_ends_the_job_and_names_the_operator(tmp_path: Path) -> None:
    with pytest.raises(JobExecutionError, match="ValueError: no snapshot 1") as failed:
        list(job(tmp_path, tolerable=0).execute_and_collect("declining"))
    assert failed.value.operator_name == "declines"
