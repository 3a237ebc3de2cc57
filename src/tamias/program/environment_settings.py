"""From the environment's configuration to the settings of one job."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from tamias.config import options
from tamias.config.checkpointing import CheckpointingMode
from tamias.config.config_file import load_configuration
from tamias.config.configuration import Configuration
from tamias.config.python_dependencies import PythonArchive, PythonDependencies
from tamias.config.restart_strategy import RestartStrategyConfiguration, resolve
from tamias.config.time_characteristic import TimeCharacteristic
from tamias.config.value_text import parse_map
from tamias.driver.job_settings import JobSettings
from tamias.errors import ConfigurationError
from tamias.functions.job_id import JobID
from tamias.graph.job_graph import CachedFile, ExecutionSettings
from tamias.graph.translation import GraphSettings
from tamias.program.checkpoint_config import CheckpointConfig
from tamias.state.rocksdb.settings import RocksDBSettings, require_rocksdict, rocksdb_settings

CONF_DIR_VARIABLE = "TAMIAS_CONF_DIR"
CHAIN_DIFFERENT_MAX_PARALLELISM = "pipeline.operator-chaining.chain-operators-with-different-max-parallelism"
BUFFER_TIMEOUT_ENABLED = "execution.buffer-timeout.enabled"
PYTHON_FILES = "python.files"
PYTHON_ARCHIVES = "python.archives"
PYTHON_EXECUTABLE = "python.executable"
PYTHON_REQUIREMENTS = "python.requirements"
JAVA_JARS = "spark.jars"
JAVA_CLASSPATHS = ("spark.driver.extraClassPath", "spark.executor.extraClassPath")

# Flink: 1.x named backends after where their checkpoints go; their working state is on heap in all three cases.
_HEAP_NAMES = frozenset({"hashmap", "jobmanager", "memory", "filesystem", "fs"})


_command_line: Configuration | None = None


def set_command_line(configuration: Configuration | None) -> None:
    """What `tamias run` was told: all environments made from now on start with it, over the configuration file."""
    global _command_line  # noqa: PLW0603 - a program is run once per process, and cannot be handed anything
    _command_line = configuration


def configuration_of_machine() -> Configuration:
    """What an environment starts from: the configuration file, and over it what `tamias run` was told."""
    found = configuration_of_file()
    if _command_line is not None:
        found.add_all(with_current_keys(_command_line))
    return found


def configuration_of_file() -> Configuration:
    """What the configuration file says, if the environment variable `TAMIAS_CONF_DIR` leads to one."""
    folder = os.environ.get(CONF_DIR_VARIABLE)
    if not folder:
        return Configuration()
    for name in ("config.yaml", "flink-conf.yaml"):
        path = Path(folder) / name
        if path.is_file():
            return with_current_keys(load_configuration(path))
    raise ConfigurationError(f"{CONF_DIR_VARIABLE} is {folder!r}, where there is no config.yaml; unset it or add one")


def with_current_keys(given: Configuration) -> Configuration:
    """The same with old keys renamed, so that a stronger source with an old key beats a weaker one with the new key."""
    renamed = Configuration(given)
    current = {option.key for option in options.all_options()}
    for option in options.all_options():
        for old in option.old_keys:
            if given.contains_key(old) and not renamed.contains_key(option.key):
                renamed.set_string(option.key, given.get_string(old))
    for option in options.all_options():
        for old in option.old_keys:
            if old not in current:
                renamed.remove_config(old)
    return renamed


def graph_settings(
    configuration: Configuration, job_name: str, checkpoints: CheckpointConfig, cached_files: Iterable[CachedFile]
) -> GraphSettings:
    """What the graph is built with."""
    max_parallelism = options.get(configuration, options.MAX_PARALLELISM)
    return GraphSettings(
        name=job_name,
        parallelism=options.get(configuration, options.PARALLELISM),
        max_parallelism=None if max_parallelism == -1 else max_parallelism,
        mode=options.get(configuration, options.RUNTIME_MODE),
        chaining=options.get(configuration, options.OPERATOR_CHAINING),
        chain_different_max_parallelism=configuration.get_boolean(CHAIN_DIFFERENT_MAX_PARALLELISM, True),
        auto_generate_uids=options.get(configuration, options.AUTO_GENERATE_UIDS),
        unaligned_checkpoints=checkpoints.is_unaligned_checkpoints_enabled(),
        force_unaligned=checkpoints.is_force_unaligned_checkpoints(),
        execution=ExecutionSettings(
            object_reuse=options.get(configuration, options.OBJECT_REUSE),
            auto_watermark_interval_ms=options.get(configuration, options.AUTO_WATERMARK_INTERVAL),
            time_characteristic=TimeCharacteristic[options.get(configuration, options.TIME_CHARACTERISTIC)],
            job_parameters=options.get(configuration, options.GLOBAL_JOB_PARAMETERS).copy(),
            cached_files=(*_configured_files(configuration), *cached_files),
            checkpointing=checkpoints.is_checkpointing_enabled(),
            releases_at_once=checkpoints.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE,
        ),
    )


def job_settings(
    configuration: Configuration,
    job_name: str,
    checkpoints: CheckpointConfig,
    restart_wish: RestartStrategyConfiguration | None,
    *,
    collect: bool,
) -> JobSettings:
    """What the job is submitted with."""
    checkpoint_settings = checkpoints._settings()
    return JobSettings(
        job_name=job_name,
        job_id=job_id(configuration),
        checkpoints=checkpoint_settings,
        restart=resolve(restart_wish, configuration, checkpointing=checkpoint_settings.enabled),
        failover=options.get(configuration, options.FAILOVER_STRATEGY),  # type: ignore[arg-type]
        restore_path=options.get(configuration, options.RESTORE_PATH),
        allow_non_restored_state=options.get(configuration, options.RESTORE_IGNORE_UNCLAIMED),
        claim_mode=options.get(configuration, options.RESTORE_CLAIM_MODE),  # type: ignore[arg-type]
        state_backend=state_backend_name(configuration),
        rocksdb=rocksdb_of(configuration),
        savepoint_directory=options.get(configuration, options.SAVEPOINT_DIR),
        python=python_dependencies(configuration),
        control=options.get(configuration, options.CONTROL),
        heartbeat_interval_ms=options.get(configuration, options.HEARTBEAT_INTERVAL),
        heartbeat_timeout_ms=heartbeat_timeout_ms(configuration),
        buffer_timeout_ms=buffer_timeout_ms(configuration),
        configuration=configuration.to_dict(),
        collect=collect,
    )


def state_backend_name(configuration: Configuration) -> Literal["hashmap", "rocksdb"]:
    """Where working state is kept."""
    given = options.get(configuration, options.STATE_BACKEND)
    name = given.strip().lower()
    if name in _HEAP_NAMES:
        return "hashmap"
    if name == "rocksdb":
        return "rocksdb"
    raise ConfigurationError(f"{options.STATE_BACKEND.key} is {given!r}; there are 'hashmap' and 'rocksdb'")


def rocksdb_of(configuration: Configuration) -> RocksDBSettings | None:
    """How RocksDB is set up, if it is used at all."""
    if state_backend_name(configuration) != "rocksdb":
        return None
    require_rocksdict()
    return rocksdb_settings(configuration)


def job_id(configuration: Configuration) -> JobID:
    """The one that was asked for, else a new one."""
    given = options.get(configuration, options.JOB_ID)
    if given is None:
        return JobID.generate()
    try:
        return JobID(given)
    except ValueError as error:
        raise ConfigurationError(f"cannot read the value of {options.JOB_ID.key!r}: {error}") from None


def heartbeat_timeout_ms(configuration: Configuration) -> int:
    """How long a slot may be silent; longer than it takes to show that it lives."""
    interval, timeout = (options.get(configuration, o) for o in (options.HEARTBEAT_INTERVAL, options.HEARTBEAT_TIMEOUT))
    if not 0 < interval < timeout:
        raise ConfigurationError(
            f"heartbeat.interval ({interval} ms) must be above 0 and below heartbeat.timeout ({timeout} ms)"
        )
    return timeout


def buffer_timeout_ms(configuration: Configuration) -> int:
    """How long output may wait to be sent with more; -1 for until enough is there."""
    if not configuration.get_boolean(BUFFER_TIMEOUT_ENABLED, True):
        return -1
    return options.get(configuration, options.BUFFER_TIMEOUT)


def python_dependencies(configuration: Configuration) -> PythonDependencies:
    """What the slots' interpreter needs."""
    requirements, _, cache_dir = (configuration.get_string(PYTHON_REQUIREMENTS) or "").partition("#")
    archives = []
    for entry in comma_list(configuration, PYTHON_ARCHIVES):
        path, _, target = entry.partition("#")
        archives.append(PythonArchive(path, target or None))
    return PythonDependencies(
        files=comma_list(configuration, PYTHON_FILES),
        archives=tuple(archives),
        executable=configuration.get_string(PYTHON_EXECUTABLE),
        requirements_file=requirements or None,
        requirements_cache_dir=cache_dir or None,
    )


def comma_list(configuration: Configuration, key: str) -> tuple[str, ...]:
    """The entries of a key whose value is a list with commas."""
    return tuple(entry.strip() for entry in (configuration.get_string(key) or "").split(",") if entry.strip())


def append_to_list(configuration: Configuration, key: str, *entries: str, separator: str = ",") -> None:
    """Add entries to a key whose value is a list, each of them once."""
    present = [entry for entry in (configuration.get_string(key) or "").split(separator) if entry]
    present += [entry for entry in entries if entry not in present]
    configuration.set_string(key, separator.join(present))


def _configured_files(configuration: Configuration) -> list[CachedFile]:
    files = []
    for entry in options.get(configuration, options.CACHED_FILES):
        try:
            fields = parse_map(entry)
            executable = fields.get("executable", "false").lower() == "true"
            files.append(CachedFile(fields["name"], fields["path"], executable))
        except (ValueError, KeyError):
            raise ConfigurationError(
                f"cannot read {entry!r} in {options.CACHED_FILES.key}: expected name:n,path:p,executable:false"
            ) from None
    return files
