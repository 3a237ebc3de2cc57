"""Jobs whose driver dies after some epochs, and the checkpoint they leave."""

from pathlib import Path

import pytest

from ekorn.common import Configuration, RestartStrategies, WatermarkStrategy
from ekorn.datastream import ExternalizedCheckpointRetention, StreamExecutionEnvironment
from ekorn.testing.scripted import Crash, DriverDied, Script, ScriptedSource, split_evenly, start_scripted


def environment(directory=None, parallelism=1):
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    env.set_parallelism(parallelism).set_max_parallelism(16)
    env.enable_checkpointing(10)
    if directory is not None:
        env.get_checkpoint_config().set_checkpoint_storage_dir(str(directory))
    env.get_checkpoint_config().set_externalized_checkpoint_retention(
        ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
    )
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 0))
    return env


def numbers(env, count=12, splits=1, run=2):
    source = ScriptedSource(split_evenly(range(count), splits), [run])
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")


def interrupted(directory, draw, parallelism, epochs=3, **settings):
    """Run a job until its driver dies after some epochs; return its newest checkpoint."""
    with pytest.raises(DriverDied):
        script = Script(crashes=[Crash("after-epoch", epochs)], driver_dies=True)
        start_scripted(draw(environment(directory, parallelism)), script, **settings)
    return str(max(Path(directory).glob("*/chk-*/_metadata"), key=lambda path: int(path.parent.name[4:])).parent)
