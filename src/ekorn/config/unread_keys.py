"""Keys that no part of ekorn reads: misspelt ones, and options of Flink that have no meaning here.

Such a key in a program or on the command line is refused, because an ignored setting looks like a working one. A
configuration file may be that of a Flink cluster, so its unread keys are left out, and the log names them. Keys outside
of Flink's and Ekorn's name spaces belong to the program.
"""

from __future__ import annotations

import difflib
import logging
from functools import cache

from ekorn.config.configuration import Configuration
from ekorn.config.options import rocksdb as rocksdb_options
from ekorn.config.options.listing import all_options, service_keys
from ekorn.config.settings.metric_settings import PREFIX as REPORTERS
from ekorn.errors import ConfigurationError

__all__ = ["refuse_unread_keys", "without_unread_keys"]

_log = logging.getLogger(__name__)

_CLUSTER = "Ekorn runs on Spark and starts no Flink processes"
_STORES = "credentials and addresses of a store are set as docs/checkpoint_storage.md says"
_INSTEAD = {  # by prefix; the first match counts
    "queryable-state.": "slots answer queries over the connections of the driver, one thread for each client",
    "query.": "slots answer queries over the connections of the driver, one thread for each client",
    "taskmanager.memory.": "Spark provides the memory: set spark.executor.memory and spark.executor.memoryOverhead",
    "jobmanager.memory.": "Spark provides the memory: set spark.driver.memory",
    "taskmanager.numberOfTaskSlots": "the parallelism decides how many slots run: set parallelism.default",
    "high-availability": "it is an option of the service (`ekorn service start`); without a service, a job with a "
    "checkpoint directory is continued by the next driver that has its job id",
    "rest.": "it is an option of the service (`ekorn service start`); a driver of its own has ekorn.web",
    "pipeline.jars": "call env.add_jars(), or set spark.jars",
    "pipeline.classpaths": "call env.add_classpaths(), or set spark.driver.extraClassPath",
    "s3.": _STORES,
    "s3a.": _STORES,
    "fs.": _STORES,
    "table.": "Ekorn has the DataStream API; ask Spark for tables and SQL",
    "sql-": "Ekorn has the DataStream API; ask Spark for tables and SQL",
}
_CLUSTER_KEYS = (
    "akka.", "blob.", "client.", "cluster.", "env.", "historyserver.", "io.", "jobmanager.", "jobstore.",
    "kubernetes.", "pekko.", "process.", "resourcemanager.", "security.", "slot.", "slotmanager.", "taskmanager.",
    "web.", "yarn.", "zookeeper.",
)  # fmt: skip
_NAME_SPACES = (
    "execution.", "heartbeat.", "metrics.", "parallelism.", "pipeline.", "python.", "restart-strategy", "state.",
    "task.", "ekorn.",
)  # fmt: skip
_TUNING = ("python.fn-execution.", "python.execution-mode", "python.metric.", "python.profile.", "python.state.")
"""Options of PyFlink's connection between the JVM and Python, which Ekorn does not have. No result depends on them."""


def refuse_unread_keys(configuration: Configuration) -> None:
    """Check the keys of a job's configuration.

    Raises:
        ConfigurationError: A key is misspelt, or is an option of Flink that has no meaning here.
    """
    for key in sorted(configuration.to_dict()):
        if key.startswith(_TUNING):
            _log.warning("the option %r tunes PyFlink's connection to the JVM and has no effect here", key)
        elif (why := _refusal(key)) is not None:
            raise ConfigurationError(f"the option {key!r} is refused, because nothing reads it: {why}")


def without_unread_keys(configuration: Configuration, where: str) -> Configuration:
    """Return the settings of a file without the keys that nothing reads; the log names these."""
    configuration = _without_service_keys(configuration)
    unread = [key for key in sorted(configuration.to_dict()) if key.startswith(_TUNING) or _refusal(key) is not None]
    if not unread:
        return configuration
    _log.warning("options in %s that nothing reads: %s", where, ", ".join(unread))
    kept = Configuration(configuration)
    for key in unread:
        kept.remove_config(key)
    return kept


def _without_service_keys(configuration: Configuration) -> Configuration:
    """Return the settings without those of the standing service, which reads the same file."""
    kept = Configuration(configuration)
    for key in service_keys():
        kept.remove_config(key)
    return kept


def _refusal(key: str) -> str | None:
    """Return why a key is refused; None if it is read, or belongs to the program."""
    known = _known_keys()
    if key in known or key.startswith(("spark.", "$internal.", rocksdb_options.PREFIX, REPORTERS)):
        return None
    for prefix, why in _INSTEAD.items():
        if key.startswith(prefix):
            return why
    of_flink = key.startswith(_NAME_SPACES)
    near = difflib.get_close_matches(key, list(known), 1, 0.8 if of_flink else 0.9)
    if near:
        return f"did you mean {near[0]!r}?"
    if key.startswith(_CLUSTER_KEYS):
        return _CLUSTER
    return "docs/options.md lists the options" if of_flink else None


@cache
def _known_keys() -> dict[str, None]:
    """Return every key that is read, sorted, so that of two keys as near as each other the same one is suggested."""
    general = {key for option in all_options() for key in (option.key, *option.old_keys)}
    return dict.fromkeys(sorted(general | {option.key for option in rocksdb_options.rocksdb_options()}))
