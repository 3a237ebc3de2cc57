"""The environment that the jobs of these tests share: checkpoints in files, many restarts, a chosen backend."""

from __future__ import annotations

from pathlib import Path

from ekorn.common import Configuration
from ekorn.common.restart_strategy import RestartStrategies
from ekorn.datastream import ExternalizedCheckpointRetention, StreamExecutionEnvironment


def checkpointed_environment(
    folder: Path, *, parallelism: int, interval_ms: int, restore: str | None, backend: str, execution: str = "epochs"
) -> StreamExecutionEnvironment:
    """Create an environment with checkpoints in `folder/checkpoints`, which starts from `restore` if it is given."""
    configuration = Configuration()
    configuration.set_string("state.backend.type", backend)
    configuration.set_string("ekorn.execution", execution)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(parallelism)
    env.enable_checkpointing(interval_ms)
    config = env.get_checkpoint_config()
    config.set_checkpoint_storage_dir(str(folder / "checkpoints"))
    config.set_externalized_checkpoint_retention(ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(20, 100))
    if restore is not None:
        env.set_restore_path(restore)
    return env
