"""Options of state backends, checkpoints and savepoints, and of starting from them."""

from __future__ import annotations

from typing import Literal

from ekorn.config.option import ConfigOption
from ekorn.config.options.kinds import at_least, choice, count, flag, millis, text, within
from ekorn.config.value_text import parse_bool, parse_duration_ms, parse_int, parse_list, parse_memory_bytes

STATE_BACKEND = ConfigOption(
    "state.backend.type",
    str,
    "hashmap",
    ("state.backend",),
    sentence="Where keyed state is kept: hashmap or rocksdb, or a name of Flink 1.x (jobmanager, filesystem).",
)
STATE_BACKEND_ASYNC = flag(
    "state.backend.async", True, "Whether heap state is written while the job processes records."
)
CHECKPOINT_INCREMENTAL = flag(
    "execution.checkpointing.incremental",
    True,  # Flink: false, because only RocksDB has it. In ekorn the heap has it too, and it costs nothing.
    "Whether a checkpoint writes only what changed since the last one.",
    "state.backend.incremental",
)
CHANGELOG_ENABLED = ConfigOption[bool | None](
    "state.changelog.enabled",
    parse_bool,
    None,
    sentence="Whether state changes are logged continuously (Flink); here the same as incremental checkpoints.",
)
CHECKPOINT_STORAGE = text(
    "execution.checkpointing.storage",
    "The checkpoint storage, jobmanager or filesystem; unset, filesystem if a directory is set.",
    "state.checkpoint-storage",
)
CHECKPOINT_DIR = text(
    "execution.checkpointing.dir",
    "The directory of checkpoints.",
    "state.checkpoints.dir",
    "state.backend.fs.checkpointdir",
)
CHECKPOINT_CREATE_SUBDIR = flag(
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
SAVEPOINT_DIR = text(
    "execution.checkpointing.savepoint-dir", "The default directory of savepoints.", "state.savepoints.dir"
)
CHECKPOINT_INLINE_THRESHOLD = ConfigOption(
    "execution.checkpointing.data-inline-threshold",
    parse_memory_bytes,
    20 * 1024,
    ("state.storage.fs.memory-threshold", "state.backend.fs.memory-threshold"),
    "bytes",
    "State up to this size is kept in the metadata file instead of a file of its own.",
    within(0, 1024 * 1024),
)
CHECKPOINT_WRITE_BUFFER = ConfigOption(
    "execution.checkpointing.write-buffer-size",
    parse_memory_bytes,
    4096,
    ("state.backend.fs.write-buffer-size",),
    "bytes",
    "How much is buffered before it is written.",
)
RECOVER_FROM_LOCAL = flag(
    "execution.state-recovery.from-local",
    False,
    "Whether a restart reads state from local copies where there are any.",
    "state.backend.local-recovery",
)
LOCAL_BACKUP = flag(
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
CHECKPOINT_MODE = choice(
    "execution.checkpointing.mode",
    "EXACTLY_ONCE",
    ("EXACTLY_ONCE", "AT_LEAST_ONCE"),
    "The guarantee for output after a failure, and for state where the job runs continuously.",
)
CHECKPOINT_INTERVAL = ConfigOption[int | None](
    "execution.checkpointing.interval",
    parse_duration_ms,
    None,
    unit="ms",
    sentence="The interval of periodic checkpoints; unset is off.",
    check=at_least(0),
)
CHECKPOINT_INTERVAL_DURING_BACKLOG = ConfigOption[int | None](
    "execution.checkpointing.interval-during-backlog",
    parse_duration_ms,
    None,
    unit="ms",
    sentence="The interval of periodic checkpoints during a backlog; 0 is off, unset is the usual interval.",
    check=at_least(0),
)
CHECKPOINT_TIMEOUT = millis(
    "execution.checkpointing.timeout", 600_000, "How long a checkpoint may take before it expires."
)
CHECKPOINT_MIN_PAUSE = millis(
    "execution.checkpointing.min-pause", 0, "The minimum time from the end of one checkpoint to the start of the next."
)
CHECKPOINT_MAX_CONCURRENT = count(
    "execution.checkpointing.max-concurrent-checkpoints", 1, "The largest number of checkpoints in flight.", least=1
)
# Flink: 1.10 to 1.13 wrote -1 for "not set", which means 0.
CHECKPOINT_TOLERABLE_FAILURES = count(
    "execution.checkpointing.tolerable-failed-checkpoints",
    0,
    "How many consecutive checkpoints may fail before the job fails.",
    least=-1,
)
CHECKPOINT_RETENTION = choice(
    "execution.checkpointing.externalized-checkpoint-retention",
    "NO_EXTERNALIZED_CHECKPOINTS",
    ("RETAIN_ON_CANCELLATION", "DELETE_ON_CANCELLATION", "NO_EXTERNALIZED_CHECKPOINTS"),
    "Whether checkpoints are kept when the job fails or is cancelled.",
)
CHECKPOINT_UNALIGNED = flag(
    "execution.checkpointing.unaligned.enabled",
    False,
    "Whether the marks of checkpoints overtake the records on their way, which become part of the checkpoint; with "
    "ekorn.execution: continuous (in epochs no record is on its way at a checkpoint).",
    "execution.checkpointing.unaligned",
)
CHECKPOINT_UNALIGNED_FORCED = flag(
    "execution.checkpointing.unaligned.forced",
    False,
    "Whether unaligned checkpoints are allowed with custom partitioning; see unaligned.enabled.",
)
CHECKPOINT_ALIGNED_TIMEOUT = millis(
    "execution.checkpointing.aligned-checkpoint-timeout",
    0,
    "How long an unaligned checkpoint is aligned before its marks overtake; see unaligned.enabled.",
    "execution.checkpointing.alignment-timeout",
)
CHECKPOINT_AFTER_TASKS_FINISH = flag(
    "execution.checkpointing.checkpoints-after-tasks-finish",
    True,
    "Whether checkpoints are taken when some sources have ended.",
    "execution.checkpointing.checkpoints-after-tasks-finish.enabled",
)
PREFER_CHECKPOINT_FOR_RECOVERY = flag(
    "execution.checkpointing.prefer-checkpoint-for-recovery",
    False,
    "Whether a restart restores the last checkpoint even if a savepoint is newer (Flink 1.9 to 1.14).",
)
SNAPSHOT_COMPRESSION = flag(
    "execution.checkpointing.snapshot-compression",
    False,
    "Whether keyed state is compressed in checkpoints.",
    "execution.snapshot-compression",
)
RESTORE_PATH = text(
    "execution.state-recovery.path", "The checkpoint or savepoint to start from.", "execution.savepoint.path"
)
RESTORE_IGNORE_UNCLAIMED = flag(
    "execution.state-recovery.ignore-unclaimed-state",
    False,
    "Whether saved state that belongs to no operator of the job is dropped instead of failing the restore.",
    "execution.savepoint.ignore-unclaimed-state",
)
RESUME = flag(
    "ekorn.resume",
    False,
    "Whether the job continues the job of the same name that has the newest checkpoint in the checkpoint directory.",
)
ONLY_CHECK_RESTORE = flag(
    "$internal.only-check-restore",
    False,
    "Whether a job only checks that it can start from what it is to start from; the service sets it before an upgrade.",
)
ONLY_CONTINUE = flag(
    "$internal.only-continue",
    False,
    "Whether a job fails if it has no checkpoint to start from; the service sets it when the driver of a job was lost.",
)
LEADER = text(
    "$internal.leader",
    "The cluster of services and the term of its leader, for a driver that the leader starts: the driver takes the "
    "checkpoint directory over from the drivers of earlier leaders.",
)
RESTORE_CLAIM_MODE: ConfigOption[Literal["NO_CLAIM", "CLAIM", "LEGACY"]] = choice(
    "execution.state-recovery.claim-mode",
    "NO_CLAIM",
    ("NO_CLAIM", "CLAIM", "LEGACY"),
    "Whether the job takes over the files of the checkpoint it starts from.",
    "execution.savepoint-restore-mode",
)
OWNER_LEASE = millis(
    "ekorn.checkpoint.owner-lease",
    30_000,
    "How long a driver on another host may be silent before its checkpoint directory is taken over.",
)
SIGNING_KEY_FILE = text(
    "ekorn.checkpoint.signing-key-file",
    "A file with the key that signs checkpoints and savepoints; with a key, what is not signed with it is refused.",
)
