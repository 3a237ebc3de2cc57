"""Jobs whose sinks commit with checkpoints, crashed at each step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ekorn.common import Configuration, RestartStrategies
from ekorn.datastream import CheckpointingMode, ExternalizedCheckpointRetention, StreamExecutionEnvironment
from ekorn.testing.scripted import Crash, DriverDied, Point, Script, run_scripted, start_scripted

POINTS: list[Point] = [
    "before-deploy",
    "after-deploy",
    "before-epoch",
    "in-epoch",
    "after-epoch",
    "before-notify",
    "in-notify",
    "after-notify",
]


def environment(
    parallelism: int = 1, mode: CheckpointingMode = CheckpointingMode.EXACTLY_ONCE, restarts: int = 20
) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    env.set_parallelism(parallelism)
    env.enable_checkpointing(10, mode)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(restarts, 0))
    return env


def retaining(env: StreamExecutionEnvironment, folder: Path) -> StreamExecutionEnvironment:
    """Let a job write its checkpoints to a folder, and leave them there."""
    config = env.get_checkpoint_config()
    config.set_checkpoint_storage_dir(str(folder))
    config.set_externalized_checkpoint_retention(ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION)
    return env


def continuing(env: StreamExecutionEnvironment, checkpoint: Path) -> StreamExecutionEnvironment:
    """Let a job start from a checkpoint."""
    env.configure(Configuration().set_string("execution.savepoint.path", str(checkpoint)))
    return env


def run_at_two_parallelisms(
    draw: Callable[[StreamExecutionEnvironment], object], folder: Path, point: Point, before: int, after: int
) -> None:
    """Lose the driver of a job at a step, and run the job to its end from its newest checkpoint."""
    env = retaining(environment(before), folder)
    draw(env)
    with pytest.raises(DriverDied):
        start_scripted(env, Script(crashes=[Crash(point, 2)], driver_dies=True))
    newest = max(folder.glob("*/chk-*"), key=lambda path: int(path.name[4:]))
    again = continuing(environment(after), newest)
    draw(again)
    run_scripted(again)
