"""From the environment's configuration to the settings that a job graph is built with."""

from __future__ import annotations

from collections.abc import Iterable

from ekorn.config import options
from ekorn.config.checkpoint_config import CheckpointConfig
from ekorn.config.checkpointing import CheckpointingMode
from ekorn.config.configuration import Configuration
from ekorn.config.settings.metric_settings import state_latency_settings
from ekorn.config.time_characteristic import TimeCharacteristic
from ekorn.config.value_text import parse_map
from ekorn.errors import ConfigurationError
from ekorn.functions.dead_letters import OnRecordError
from ekorn.graph.job_graph import CachedFile, ExecutionSettings
from ekorn.graph.translation import GraphSettings


def graph_settings(
    configuration: Configuration, job_name: str, checkpoints: CheckpointConfig, cached_files: Iterable[CachedFile]
) -> GraphSettings:
    """Read the settings that the translation of a stream graph to a job graph depends on."""
    max_parallelism = options.MAX_PARALLELISM.read(configuration)
    return GraphSettings(
        name=job_name,
        parallelism=options.PARALLELISM.read(configuration),
        max_parallelism=None if max_parallelism == -1 else max_parallelism,
        mode=options.RUNTIME_MODE.read(configuration),
        chaining=options.OPERATOR_CHAINING.read(configuration),
        chain_different_max_parallelism=options.CHAIN_DIFFERENT_MAX_PARALLELISM.read(configuration),
        auto_generate_uids=options.AUTO_GENERATE_UIDS.read(configuration),
        unaligned_checkpoints=checkpoints.is_unaligned_checkpoints_enabled(),
        force_unaligned=checkpoints.is_force_unaligned_checkpoints(),
        on_record_error=OnRecordError(options.ON_RECORD_ERROR.read(configuration)),
        execution=ExecutionSettings(
            record_error_limit=options.RECORD_ERROR_LIMIT.read(configuration),
            object_reuse=options.OBJECT_REUSE.read(configuration),
            blob_bytes=options.BLOB_BYTES.read(configuration),
            batch_records_in_memory=options.BATCH_RECORDS_IN_MEMORY.read(configuration),
            async_linger_ms=options.ASYNC_LINGER.read(configuration),
            max_record_bytes=options.MAX_RECORD_BYTES.read(configuration),
            slot_memory_bytes=options.SLOT_MEMORY.read(configuration),
            auto_watermark_interval_ms=options.AUTO_WATERMARK_INTERVAL.read(configuration),
            held_watermark_warning_ms=options.HELD_WATERMARK_WARNING.read(configuration),
            time_characteristic=TimeCharacteristic[options.TIME_CHARACTERISTIC.read(configuration)],
            job_parameters=options.GLOBAL_JOB_PARAMETERS.read(configuration).copy(),
            cached_files=(*_configured_files(configuration), *cached_files),
            checkpointing=checkpoints.is_checkpointing_enabled(),
            state_latency=state_latency_settings(configuration),
            restarts_regions=options.FAILOVER_STRATEGY.read(configuration) == "region",
            releases_at_once=checkpoints.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE,
        ),
    )


def _configured_files(configuration: Configuration) -> list[CachedFile]:
    files = []
    for entry in options.CACHED_FILES.read(configuration):
        try:
            fields = parse_map(entry)
            executable = fields.get("executable", "false").lower() == "true"
            files.append(CachedFile(fields["name"], fields["path"], executable))
        except (ValueError, KeyError):
            raise ConfigurationError(
                f"cannot read {entry!r} in {options.CACHED_FILES.key}: expected name:n,path:p,executable:false"
            ) from None
    return files
