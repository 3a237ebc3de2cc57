"""Options of state backends, checkpoints, savepoints and restores."""

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
    sentence="The state backend: `hashmap` or `rocksdb`, or a name from Flink 1.x (`jobmanager`, `filesystem`).",
)
STATE_BACKEND_ASYNC = flag(
    "state.backend.async", True, "Whether snapshots of heap state are written while the job keeps processing records."
)
CHECKPOINT_INCREMENTAL = flag(
    "execution.checkpointing.incremental",
    True,  # Flink: false, because only RocksDB has it. In ekorn the heap has it too, and it costs nothing.
    "Whether a checkpoint writes only the state that changed since the checkpoint before it.",
    "state.backend.incremental",
)
CHANGELOG_ENABLED = ConfigOption[bool | None](
    "state.changelog.enabled",
    parse_bool,
    None,
    sentence="Whether checkpoints write only the changes to state. Flink logs changes continuously; here, this "
    "key enables incremental checkpoints.",
)
CHECKPOINT_STORAGE = text(
    "execution.checkpointing.storage",
    "The checkpoint storage: `jobmanager` or `filesystem`. By default, it is `filesystem` if a checkpoint directory "
    "is set, and `jobmanager` otherwise.",
    "state.checkpoint-storage",
)
CHECKPOINT_DIR = text(
    "execution.checkpointing.dir",
    "The directory in which checkpoints are stored, as a path or a URL.",
    "state.checkpoints.dir",
    "state.backend.fs.checkpointdir",
)
CHECKPOINT_CREATE_SUBDIR = flag(
    "execution.checkpointing.create-subdir",
    True,
    "Whether each job writes its checkpoints to a subdirectory named after its id.",
    "state.checkpoints.create-subdir",
)
# No check here: the checkpoint settings take a value below 1 as 1, with a warning.
CHECKPOINT_NUM_RETAINED = ConfigOption(
    "execution.checkpointing.num-retained",
    parse_int,
    1,
    ("state.checkpoints.num-retained",),
    sentence="The number of completed checkpoints that are retained.",
)
SAVEPOINT_DIR = text(
    "execution.checkpointing.savepoint-dir",
    "The directory for savepoints whose request does not name one.",
    "state.savepoints.dir",
)
CHECKPOINT_INLINE_THRESHOLD = ConfigOption(
    "execution.checkpointing.data-inline-threshold",
    parse_memory_bytes,
    20 * 1024,
    ("state.storage.fs.memory-threshold", "state.backend.fs.memory-threshold"),
    "bytes",
    "The size up to which state is stored in the metadata file instead of a file of its own.",
    within(0, 1024 * 1024),
)
CHECKPOINT_WRITE_BUFFER = ConfigOption(
    "execution.checkpointing.write-buffer-size",
    parse_memory_bytes,
    4096,
    ("state.backend.fs.write-buffer-size",),
    "bytes",
    "The size of the buffer through which state files are written. It is at least the inline threshold.",
)
FRAME_SIZE = ConfigOption(
    "pekko.framesize",
    parse_memory_bytes,
    10 * 1024 * 1024,
    ("akka.framesize",),
    "bytes",
    "The size up to which a subtask sends state to the driver with one acknowledgement, where checkpoints are kept in "
    "the driver's memory. A checkpoint with more state in a subtask fails.",
    at_least(1),
)
RECOVER_FROM_LOCAL = flag(
    "execution.state-recovery.from-local",
    False,
    "Whether a restart reads state from local copies where they exist.",
    "state.backend.local-recovery",
)
LOCAL_BACKUP = flag(
    "execution.checkpointing.local-backup.enabled",
    False,
    "Whether slots keep local copies of the state files that they write.",
    "state.backend.local-recovery",
)
LOCAL_BACKUP_DIRS = ConfigOption[list[str]](
    "execution.checkpointing.local-backup.dirs",
    parse_list,
    [],
    ("taskmanager.state.local.root-dirs",),
    sentence="The directories for local copies. By default, they are kept in the directory for temporary files.",
)
CHECKPOINT_MODE = choice(
    "execution.checkpointing.mode",
    "EXACTLY_ONCE",
    ("EXACTLY_ONCE", "AT_LEAST_ONCE"),
    "The guarantee after a failure. It applies to the output of sinks and, with continuous execution, also to state.",
)
CHECKPOINT_INTERVAL = ConfigOption[int | None](
    "execution.checkpointing.interval",
    parse_duration_ms,
    None,
    unit="ms",
    sentence="The interval of periodic checkpoints. By default, no periodic checkpoints are taken.",
    check=at_least(0),
)
CHECKPOINT_INTERVAL_DURING_BACKLOG = ConfigOption[int | None](
    "execution.checkpointing.interval-during-backlog",
    parse_duration_ms,
    None,
    unit="ms",
    sentence="The interval of periodic checkpoints while sources have a backlog; 0 disables them meanwhile. By "
    "default, the usual interval applies.",
    check=at_least(0),
)
CHECKPOINT_TIMEOUT = millis(
    "execution.checkpointing.timeout", 600_000, "The time after which a checkpoint that has not completed expires."
)
CHECKPOINT_MIN_PAUSE = millis(
    "execution.checkpointing.min-pause", 0, "The minimum time from the end of one checkpoint to the start of the next."
)
CHECKPOINT_MAX_CONCURRENT = count(
    "execution.checkpointing.max-concurrent-checkpoints", 1, "The maximum number of checkpoints in flight.", least=1
)
# Flink: 1.10 to 1.13 wrote -1 for "not set", which means 0.
CHECKPOINT_TOLERABLE_FAILURES = count(
    "execution.checkpointing.tolerable-failed-checkpoints",
    0,
    "The number of consecutive checkpoint failures that are tolerated. One more fails the job.",
    least=-1,
)
CHECKPOINT_RETENTION = choice(
    "execution.checkpointing.externalized-checkpoint-retention",
    "NO_EXTERNALIZED_CHECKPOINTS",
    ("RETAIN_ON_CANCELLATION", "DELETE_ON_CANCELLATION", "NO_EXTERNALIZED_CHECKPOINTS"),
    "Whether checkpoints are kept after the job fails or is cancelled.",
)
CHECKPOINT_UNALIGNED = flag(
    "execution.checkpointing.unaligned.enabled",
    False,
    "Whether checkpoint marks overtake records in flight, which then become part of the checkpoint. This "
    "applies to continuous execution (`ekorn.execution`) only: in epochs, no record is in flight at a "
    "checkpoint.",
    "execution.checkpointing.unaligned",
)
CHECKPOINT_UNALIGNED_FORCED = flag(
    "execution.checkpointing.unaligned.forced",
    False,
    "Whether unaligned checkpoints are allowed in jobs with custom partitioning.",
)
CHECKPOINT_ALIGNED_TIMEOUT = millis(
    "execution.checkpointing.aligned-checkpoint-timeout",
    0,
    "How long an unaligned checkpoint stays aligned before its marks overtake records.",
    "execution.checkpointing.alignment-timeout",
)
CHECKPOINT_AFTER_TASKS_FINISH = flag(
    "execution.checkpointing.checkpoints-after-tasks-finish",
    True,
    "Whether checkpoints are taken after some sources have finished.",
    "execution.checkpointing.checkpoints-after-tasks-finish.enabled",
)
PREFER_CHECKPOINT_FOR_RECOVERY = flag(
    "execution.checkpointing.prefer-checkpoint-for-recovery",
    False,
    "Whether a restart restores the latest checkpoint even if a savepoint is newer (Flink 1.9 to 1.14).",
)
SNAPSHOT_COMPRESSION = flag(
    "execution.checkpointing.snapshot-compression",
    False,
    "Whether keyed state is compressed in checkpoints and savepoints.",
    "execution.snapshot-compression",
)
RESTORE_PATH = text(
    "execution.state-recovery.path", "The checkpoint or savepoint that the job starts from.", "execution.savepoint.path"
)
RESTORE_IGNORE_UNCLAIMED = flag(
    "execution.state-recovery.ignore-unclaimed-state",
    False,
    "Whether saved state that belongs to no operator of the job is dropped. If false, the restore fails.",
    "execution.savepoint.ignore-unclaimed-state",
)
RESUME = flag(
    "ekorn.resume",
    False,
    "Whether the job resumes from the newest checkpoint of a job with the same name in the checkpoint directory.",
)
ONLY_CHECK_RESTORE = flag(
    "$internal.only-check-restore",
    False,
    "Whether the job only checks that it can be restored, and does not start. The service sets it before an upgrade.",
)
ONLY_CONTINUE = flag(
    "$internal.only-continue",
    False,
    "Whether the job fails if it has no checkpoint to start from. The service sets it when the driver "
    "of a job was lost.",
)
LEADER = text(
    "$internal.leader",
    "The cluster of services, and the term of the leader that started the driver. The driver takes the "
    "checkpoint directory over from drivers that earlier leaders started. The service sets it.",
)
RESTORE_CLAIM_MODE: ConfigOption[Literal["NO_CLAIM", "CLAIM", "LEGACY"]] = choice(
    "execution.state-recovery.claim-mode",
    "NO_CLAIM",
    ("NO_CLAIM", "CLAIM", "LEGACY"),
    "Whether the job takes ownership of the checkpoint that it starts from, and deletes it when it is no longer "
    "needed.",
    "execution.savepoint-restore-mode",
)
OWNER_LEASE = millis(
    "ekorn.checkpoint.owner-lease",
    30_000,
    "How long a driver on another host may be silent before another driver takes over its checkpoint directory.",
)
SIGNING_KEY_FILE = text(
    "ekorn.checkpoint.signing-key-file",
    "The file with the key that signs checkpoints and savepoints. With a key, a checkpoint or savepoint "
    "without its signature is refused.",
)
