"""Every configuration key that tamias reads, declared once: key, old keys, type, default, unit, one sentence.

`PARALLELISM.read(configuration)` returns a value of the right type or raises a `ConfigurationError` that names the
key. A `Configuration` keeps keys that are not declared here, and they have no effect. There are two exceptions: every
`spark.` key is handed to Spark, and RocksDB's keys are declared in `tamias.config.rocksdb_options`.

>>> from tamias.config.configuration import Configuration
>>> AUTO_WATERMARK_INTERVAL.read(Configuration().set_string("pipeline.auto-watermark-interval", "1 s"))
1000
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeVar

from tamias.config.execution_mode import RuntimeExecutionMode
from tamias.config.option import ConfigOption
from tamias.config.value_text import (
    parse_bool,
    parse_choice,
    parse_duration_ms,
    parse_enum,
    parse_float,
    parse_int,
    parse_list,
    parse_map,
    parse_memory_bytes,
)

C = TypeVar("C", bound=str)


def all_options() -> Iterator[ConfigOption[Any]]:
    """Return every option declared in this module, in the order of declaration."""
    # A copy: another thread may add a name to the module meanwhile.
    return (value for value in list(globals().values()) if isinstance(value, ConfigOption))


def _at_least(least: float) -> Callable[[Any], str | None]:
    return lambda value: None if value is None or value >= least else f"must be at least {least}"


def _within(low: float, high: float) -> Callable[[Any], str | None]:
    return lambda value: None if low <= value <= high else f"must be between {low} and {high}"


def _max_parallelism(value: int) -> str | None:
    return None if value == -1 or 0 < value <= 32768 else "must be between 1 and 32768, or -1 to derive it"


def _flag(key: str, default: bool, sentence: str, *old_keys: str) -> ConfigOption[bool]:
    return ConfigOption(key, parse_bool, default, old_keys, "", sentence)


def _text(key: str, sentence: str, *old_keys: str) -> ConfigOption[str | None]:
    return ConfigOption[str | None](key, str, None, old_keys, "", sentence)


def _millis(key: str, default: int, sentence: str, *old_keys: str) -> ConfigOption[int]:
    return ConfigOption(key, parse_duration_ms, default, old_keys, "ms", sentence, _at_least(0))


def _count(key: str, default: int, sentence: str, *old_keys: str, least: int = 0) -> ConfigOption[int]:
    return ConfigOption(key, parse_int, default, old_keys, "", sentence, _at_least(least))


def _choice(key: str, default: C, choices: tuple[C, ...], sentence: str, *old_keys: str) -> ConfigOption[C]:
    return ConfigOption(key, parse_choice(*choices), default, old_keys, "", sentence)


def _comma_list(key: str, sentence: str) -> ConfigOption[tuple[str, ...]]:
    return ConfigOption(key, _comma_separated, (), sentence=sentence)


def _comma_separated(text: str) -> tuple[str, ...]:
    return tuple(entry.strip() for entry in text.split(",") if entry.strip())


# ------------------------------------------------------------------------------------------ execution, pipeline

RUNTIME_MODE = ConfigOption(
    "execution.runtime-mode",
    parse_enum(RuntimeExecutionMode),
    RuntimeExecutionMode.STREAMING,
    sentence="Whether results are emitted as records arrive (STREAMING) or only final ones (BATCH).",
)
PARALLELISM = _count("parallelism.default", 1, "The parallelism of operators that have none of their own.", least=1)
MAX_PARALLELISM = ConfigOption(
    "pipeline.max-parallelism",
    parse_int,
    -1,
    sentence="The number of key groups of keyed state; -1 derives it from the parallelism.",
    check=_max_parallelism,
)
AUTO_WATERMARK_INTERVAL = _millis(
    "pipeline.auto-watermark-interval", 200, "The interval of periodic watermarks; 0 is off."
)
HELD_WATERMARK_WARNING = _millis(
    "tamias.watermark.held-back-warning",
    60_000,
    "How long one split or input may hold the watermark back while others advance before a warning names it; 0 is off.",
)
OPERATOR_CHAINING = _flag(
    "pipeline.operator-chaining.enabled",
    True,
    "Whether operators that need no exchange between them run in one vertex.",
    "pipeline.operator-chaining",
)
CHAIN_DIFFERENT_MAX_PARALLELISM = _flag(
    "pipeline.operator-chaining.chain-operators-with-different-max-parallelism",
    True,
    "Whether operators whose maximum parallelism differs may run in one vertex.",
)
OBJECT_REUSE = _flag(
    "pipeline.object-reuse", False, "Whether chained functions may pass on one object without copying it."
)
GLOBAL_JOB_PARAMETERS = ConfigOption[dict[str, str]](
    "pipeline.global-job-parameters", parse_map, {}, sentence="Parameters that every function of the job can read."
)
CACHED_FILES = ConfigOption[list[str]](
    "pipeline.cached-files",
    parse_list,
    [],
    sentence="Files copied to every slot; entries of the form name:n,path:p,executable:true.",
)
AUTO_GENERATE_UIDS = _flag(
    "pipeline.auto-generate-uids", True, "Whether uids are generated for operators that have none."
)
JOB_NAME = _text("pipeline.name", "The job's name when execute() is given none.")
JOB_ID = _text(
    "$internal.pipeline.job-id", "The id of the job, 32 hexadecimal digits, when a new driver continues an old job."
)
BUFFER_TIMEOUT = _millis(
    "execution.buffer-timeout.interval",
    100,
    "How long output may wait to be sent together with more.",
    "execution.buffer-timeout",
)
BUFFER_TIMEOUT_ENABLED = _flag(
    "execution.buffer-timeout.enabled",
    True,
    "Whether the buffer timeout holds; if not, output waits for a full blob.",
)
EPOCH_TARGET = _count(
    "tamias.epoch.target-ms", 2_000, "How many milliseconds an epoch may take while sources have a backlog.", least=1
)
BLOB_BYTES = ConfigOption(
    "tamias.exchange.blob-size",
    parse_memory_bytes,
    8 << 20,
    unit="bytes",
    sentence="The size at which a subtask's output to another subtask is sent.",
    check=_within(1024, 1 << 29),
)
BATCH_RECORDS_IN_MEMORY = _count(
    "tamias.batch.records-in-memory",
    500_000,
    "In BATCH mode, how many records of an input a subtask sorts or holds in memory before it writes them to disk.",
    least=1,
)
ASYNC_LINGER = _millis(
    "tamias.async-io.linger",
    50,
    "How long the end of an epoch waits for asynchronous requests; later answers leave in the next epoch.",
)
MAX_RECORD_BYTES = ConfigOption(
    "tamias.exchange.max-record-size",
    parse_memory_bytes,
    1 << 30,
    unit="bytes",
    sentence="The largest record that may be sent to another subtask or to the driver, in bytes when pickled.",
    check=_within(1024, 1 << 30),  # Spark's Python serializer stops at 2 GiB
)
SLOT_MEMORY = ConfigOption(
    "tamias.exchange.slot-memory",
    parse_memory_bytes,
    64 << 20,
    unit="bytes",
    sentence="How much of an epoch's input a slot keeps in memory until it is read; the rest waits on local disk.",
    check=_at_least(0),
)
EPOCH_SOURCE_BYTES = ConfigOption(
    "tamias.epoch.source-bytes",
    parse_memory_bytes,
    64 << 20,
    unit="bytes",
    sentence="How many bytes a source subtask may read in one epoch, as estimated from a sample of its records.",
    check=_at_least(1),
)
COLLECT_BUFFER = ConfigOption(
    "tamias.collect.buffer-size",
    parse_memory_bytes,
    64 << 20,
    unit="bytes",
    sentence="How much execute_and_collect holds in memory; the job waits while the program has not read that much.",
    check=_at_least(1),
)
EPOCH_STALL_TIMEOUT = _millis(
    "tamias.epoch.stall-timeout",
    60_000,
    "How long an epoch may make no progress outside user code before the job restarts; noticed at the next heartbeat.",
)
PROGRESS: ConfigOption[Literal["auto", "off"]] = _choice(
    "tamias.progress",
    "auto",
    ("auto", "off"),
    "Whether lines about the job are written to standard error: if it is a terminal or a notebook, or never.",
)
ON_RECORD_ERROR = _choice(
    "tamias.on-record-error",
    "fail",
    ("fail", "skip", "dead-letter"),
    "What operators do with a record for which their function raises: fail the job, leave the record out, or send it "
    "to the stream of dead letters.",
)
RECORD_ERROR_LIMIT = ConfigOption[int | None](
    "tamias.on-record-error.limit",
    parse_int,
    None,
    sentence="How many records one subtask of an operator may skip since the start of its attempt; one more fails the "
    "job. Any number if it is not set.",
    check=_at_least(0),
)
TIME_CHARACTERISTIC = _choice(
    "pipeline.time-characteristic",
    "EventTime",
    ("ProcessingTime", "IngestionTime", "EventTime"),
    "The time that time_window uses, and whether sources set timestamps (Flink 1.x).",
)
CLOSURE_CLEANER = _choice(
    "pipeline.closure-cleaner-level",
    "RECURSIVE",
    ("NONE", "TOP_LEVEL", "RECURSIVE"),
    "Accepted without effect; functions are pickled as they are.",
)
LATENCY_TRACKING_INTERVAL = _millis("metrics.latency.interval", 0, "The interval of latency markers; 0 is off.")
TASK_CANCELLATION_INTERVAL = _millis(
    "task.cancellation.interval", 30_000, "The interval at which a cancelled subtask is interrupted."
)
TASK_CANCELLATION_TIMEOUT = _millis(
    "task.cancellation.timeout", 180_000, "How long cancelling may take before the slot is ended; 0 is no limit."
)
GENERIC_TYPES = _flag("pipeline.generic-types", True, "Whether streams without a declared type are allowed.")
FORCE_AVRO = _flag("pipeline.force-avro", False, "Accepted without effect.")
FORCE_KRYO = _flag("pipeline.force-kryo", False, "Accepted without effect.")

# ------------------------------------------------------------------------------------------- state, checkpoints

STATE_BACKEND = ConfigOption(
    "state.backend.type",
    str,
    "hashmap",
    ("state.backend",),
    sentence="Where keyed state is kept: hashmap or rocksdb, or a name of Flink 1.x (jobmanager, filesystem).",
)
STATE_BACKEND_ASYNC = _flag(
    "state.backend.async", True, "Whether heap state is written while the job processes records."
)
CHECKPOINT_INCREMENTAL = _flag(
    "execution.checkpointing.incremental",
    True,  # Flink: false, because only RocksDB has it. In tamias the heap has it too, and it costs nothing.
    "Whether a checkpoint writes only what changed since the last one.",
    "state.backend.incremental",
)
CHANGELOG_ENABLED = ConfigOption[bool | None](
    "state.changelog.enabled",
    parse_bool,
    None,
    sentence="Whether state changes are logged continuously (Flink); here the same as incremental checkpoints.",
)
CHECKPOINT_STORAGE = _text(
    "execution.checkpointing.storage",
    "The checkpoint storage, jobmanager or filesystem; unset, filesystem if a directory is set.",
    "state.checkpoint-storage",
)
CHECKPOINT_DIR = _text(
    "execution.checkpointing.dir",
    "The directory of checkpoints.",
    "state.checkpoints.dir",
    "state.backend.fs.checkpointdir",
)
CHECKPOINT_CREATE_SUBDIR = _flag(
    "execution.checkpointing.create-subdir",
    True,
    "Whether each job writes into a subdirectory named by its id.",
    "state.checkpoints.create-subdir",
)
# A value below 1 means 1, with a warning when the checkpoint settings are read: hence no check here.
CHECKPOINT_NUM_RETAINED = ConfigOption(
    "execution.checkpointing.num-retained",
    parse_int,
    1,
    ("state.checkpoints.num-retained",),
    sentence="How many completed checkpoints are retained.",
)
SAVEPOINT_DIR = _text(
    "execution.checkpointing.savepoint-dir", "The default directory of savepoints.", "state.savepoints.dir"
)
CHECKPOINT_INLINE_THRESHOLD = ConfigOption(
    "execution.checkpointing.data-inline-threshold",
    parse_memory_bytes,
    20 * 1024,
    ("state.storage.fs.memory-threshold", "state.backend.fs.memory-threshold"),
    "bytes",
    "State up to this size is kept in the metadata file instead of a file of its own.",
    _within(0, 1024 * 1024),
)
CHECKPOINT_WRITE_BUFFER = ConfigOption(
    "execution.checkpointing.write-buffer-size",
    parse_memory_bytes,
    4096,
    ("state.backend.fs.write-buffer-size",),
    "bytes",
    "How much is buffered before it is written.",
)
RECOVER_FROM_LOCAL = _flag(
    "execution.state-recovery.from-local",
    False,
    "Whether a restart reads state from local copies where there are any.",
    "state.backend.local-recovery",
)
LOCAL_BACKUP = _flag(
    "execution.checkpointing.local-backup.enabled",
    False,
    "Whether slots keep local copies of their state files.",
    "state.backend.local-recovery",
)
LOCAL_BACKUP_DIRS = ConfigOption[list[str]](
    "execution.checkpointing.local-backup.dirs",
    parse_list,
    [],
    ("taskmanager.state.local.root-dirs",),
    sentence="The directories of local copies; unset, the directory for temporary files.",
)
CHECKPOINT_MODE = _choice(
    "execution.checkpointing.mode",
    "EXACTLY_ONCE",
    ("EXACTLY_ONCE", "AT_LEAST_ONCE"),
    "The guarantee for the state after a failure.",
)
CHECKPOINT_INTERVAL = ConfigOption[int | None](
    "execution.checkpointing.interval",
    parse_duration_ms,
    None,
    unit="ms",
    sentence="The interval of periodic checkpoints; unset is off.",
    check=_at_least(0),
)
CHECKPOINT_INTERVAL_DURING_BACKLOG = ConfigOption[int | None](
    "execution.checkpointing.interval-during-backlog",
    parse_duration_ms,
    None,
    unit="ms",
    sentence="The interval of periodic checkpoints during a backlog; 0 is off, unset is the usual interval.",
    check=_at_least(0),
)
CHECKPOINT_TIMEOUT = _millis(
    "execution.checkpointing.timeout", 600_000, "How long a checkpoint may take before it expires."
)
CHECKPOINT_MIN_PAUSE = _millis(
    "execution.checkpointing.min-pause", 0, "The minimum time from the end of one checkpoint to the start of the next."
)
CHECKPOINT_MAX_CONCURRENT = _count(
    "execution.checkpointing.max-concurrent-checkpoints", 1, "The largest number of checkpoints in flight.", least=1
)
# Flink: 1.10 to 1.13 wrote -1 for "not set", which means 0.
CHECKPOINT_TOLERABLE_FAILURES = _count(
    "execution.checkpointing.tolerable-failed-checkpoints",
    0,
    "How many consecutive checkpoints may fail before the job fails.",
    least=-1,
)
CHECKPOINT_RETENTION = _choice(
    "execution.checkpointing.externalized-checkpoint-retention",
    "NO_EXTERNALIZED_CHECKPOINTS",
    ("RETAIN_ON_CANCELLATION", "DELETE_ON_CANCELLATION", "NO_EXTERNALIZED_CHECKPOINTS"),
    "Whether checkpoints are kept when the job fails or is cancelled.",
)
CHECKPOINT_UNALIGNED = _flag(
    "execution.checkpointing.unaligned.enabled",
    False,
    "Accepted without effect; the end of an epoch aligns all inputs, so no record is in flight at a checkpoint.",
    "execution.checkpointing.unaligned",
)
CHECKPOINT_UNALIGNED_FORCED = _flag(
    "execution.checkpointing.unaligned.forced",
    False,
    "Whether unaligned checkpoints are allowed with custom partitioning; see unaligned.enabled.",
)
CHECKPOINT_ALIGNED_TIMEOUT = _millis(
    "execution.checkpointing.aligned-checkpoint-timeout",
    0,
    "Accepted without effect; see unaligned.enabled.",
    "execution.checkpointing.alignment-timeout",
)
CHECKPOINT_AFTER_TASKS_FINISH = _flag(
    "execution.checkpointing.checkpoints-after-tasks-finish",
    True,
    "Whether checkpoints are taken when some sources have ended.",
    "execution.checkpointing.checkpoints-after-tasks-finish.enabled",
)
PREFER_CHECKPOINT_FOR_RECOVERY = _flag(
    "execution.checkpointing.prefer-checkpoint-for-recovery",
    False,
    "Whether a restart restores the last checkpoint even if a savepoint is newer (Flink 1.9 to 1.14).",
)
SNAPSHOT_COMPRESSION = _flag(
    "execution.checkpointing.snapshot-compression",
    False,
    "Whether keyed state is compressed in checkpoints.",
    "execution.snapshot-compression",
)
RESTORE_PATH = _text(
    "execution.state-recovery.path", "The checkpoint or savepoint to start from.", "execution.savepoint.path"
)
RESTORE_IGNORE_UNCLAIMED = _flag(
    "execution.state-recovery.ignore-unclaimed-state",
    False,
    "Whether saved state that belongs to no operator of the job is dropped instead of failing the restore.",
    "execution.savepoint.ignore-unclaimed-state",
)
RESUME = _flag(
    "tamias.resume",
    False,
    "Whether the job continues the job of the same name that has the newest checkpoint in the checkpoint directory.",
)
RESTORE_CLAIM_MODE: ConfigOption[Literal["NO_CLAIM", "CLAIM", "LEGACY"]] = _choice(
    "execution.state-recovery.claim-mode",
    "NO_CLAIM",
    ("NO_CLAIM", "CLAIM", "LEGACY"),
    "Whether the job takes over the files of the checkpoint it starts from.",
    "execution.savepoint-restore-mode",
)
# --------------------------------------------------------------------------------------------- failure recovery

RESTART_STRATEGY = _text(
    "restart-strategy.type",
    "The restart strategy: none, fixed-delay, failure-rate or exponential-delay.",
    "restart-strategy",
)
FIXED_DELAY_ATTEMPTS = _count("restart-strategy.fixed-delay.attempts", 1, "The largest number of restarts.")
FIXED_DELAY_DELAY = _millis("restart-strategy.fixed-delay.delay", 1000, "The delay before each restart.")
FAILURE_RATE_MAX = _count(
    "restart-strategy.failure-rate.max-failures-per-interval",
    1,
    "The largest number of failures within the interval.",
    least=1,
)
FAILURE_RATE_INTERVAL = _millis(
    "restart-strategy.failure-rate.failure-rate-interval", 60_000, "The interval over which failures are counted."
)
FAILURE_RATE_DELAY = _millis("restart-strategy.failure-rate.delay", 1000, "The delay before each restart.")
EXPONENTIAL_INITIAL = _millis(
    "restart-strategy.exponential-delay.initial-backoff", 1000, "The delay before the first restart."
)
EXPONENTIAL_MAX = _millis(
    "restart-strategy.exponential-delay.max-backoff", 60_000, "The longest delay before a restart."
)
EXPONENTIAL_MULTIPLIER = ConfigOption(
    "restart-strategy.exponential-delay.backoff-multiplier",
    parse_float,
    1.5,
    sentence="The factor by which each delay is longer than the one before.",
    check=lambda value: None if value > 1 else "must be greater than 1",
)
EXPONENTIAL_RESET = _millis(
    "restart-strategy.exponential-delay.reset-backoff-threshold",
    3_600_000,
    "How long a job must run without a failure before the delay is reset to the initial one.",
)
EXPONENTIAL_JITTER = ConfigOption(
    "restart-strategy.exponential-delay.jitter-factor",
    parse_float,
    0.1,
    sentence="The random share of each delay.",
    check=_within(0, 1),
)
EXPONENTIAL_ATTEMPTS = _count(
    "restart-strategy.exponential-delay.attempts-before-reset-backoff",
    2**31 - 1,
    "The largest number of failures before the delay is reset.",
)
FAILOVER_STRATEGY: ConfigOption[Literal["region", "full"]] = _choice(
    "jobmanager.execution.failover-strategy",
    "region",
    ("region", "full"),
    "The part of a job that restarts after a failure: the whole job, or one region.",
)

OWNER_LEASE = _millis(
    "tamias.checkpoint.owner-lease",
    30_000,
    "How long a driver on another host may be silent before its checkpoint directory is taken over.",
)
SIGNING_KEY_FILE = _text(
    "tamias.checkpoint.signing-key-file",
    "A file with the key that signs checkpoints and savepoints; with a key, what is not signed with it is refused.",
)
LINK_ENCRYPTION: ConfigOption[Literal["auto", "required", "off"]] = _choice(
    "tamias.links.encryption",
    "auto",
    ("auto", "required", "off"),
    "Which connections of driver, slots and Spark's tasks are encrypted: those between hosts, all over TCP, or none.",
)
LINK_CERTIFICATE_FILE = _text(
    "tamias.links.certificate-file",
    "A PEM file with the certificate and private key of encrypted connections; unless set, each job makes its own.",
)
CONTROL = ConfigOption[bool | None](
    "tamias.control.enabled",
    parse_bool,
    None,
    sentence="Whether `tamias list`, `stop`, `cancel`, `savepoint trigger` reach the job; unless set, on Spark only.",
)
HEARTBEAT_INTERVAL = _millis("heartbeat.interval", 10_000, "The interval of heartbeats of a slot.")
HEARTBEAT_TIMEOUT = _millis("heartbeat.timeout", 50_000, "How long a slot may send no heartbeat before it is replaced.")

# ---------------------------------------------------------------------------------- Python and Java dependencies

PYTHON_FILES = _comma_list("python.files", "Python files, package folders and zips for the slots' import path.")
PYTHON_ARCHIVES = _comma_list(
    "python.archives", "Archives unpacked in the slots' working directory; path#folder unpacks into that folder."
)
PYTHON_EXECUTABLE = _text("python.executable", "The interpreter that runs the slots.")
PYTHON_REQUIREMENTS = _text(
    "python.requirements", "A requirements file to install for the slots; file#folder installs from that folder."
)
SPARK_JARS = _comma_list("spark.jars", "Jars that Spark brings to the driver and the executors.")
SPARK_DRIVER_CLASSPATH = _text("spark.driver.extraClassPath", "Paths added to the class path of Spark's driver.")
SPARK_EXECUTOR_CLASSPATH = _text("spark.executor.extraClassPath", "Paths added to the class path of the executors.")
