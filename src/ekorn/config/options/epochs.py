"""Options of epochs and exchanges: execution, sizes, memory and timeouts."""

from __future__ import annotations

from typing import Literal

from ekorn.config.option import ConfigOption
from ekorn.config.options.kinds import at_least, choice, count, flag, millis, within
from ekorn.config.value_text import parse_duration_ms, parse_memory_bytes

EXECUTION: ConfigOption[Literal["epochs", "continuous", "auto"]] = choice(
    "ekorn.execution",
    "epochs",
    ("epochs", "continuous", "auto"),
    "How a job runs on Spark. `epochs` runs one Spark job per epoch. `continuous` runs Spark jobs that last "
    "as long as an attempt, so that records take milliseconds from source to sink. `auto` runs continuously "
    "if Spark 4.3, the session and the job allow it. BATCH programs, loops and sources that are Spark "
    "queries always run in epochs.",
)
BUFFER_TIMEOUT = millis(
    "execution.buffer-timeout.interval",
    100,
    "The maximum time that output is buffered before it is sent.",
    "execution.buffer-timeout",
)
BUFFER_TIMEOUT_ENABLED = flag(
    "execution.buffer-timeout.enabled",
    True,
    "Whether output is sent after the buffer timeout. If false, output is sent only when a blob is full.",
)
EPOCH_TARGET = count(
    "ekorn.epoch.target-ms",
    2_000,
    "The target duration of an epoch, in milliseconds, while sources have a backlog.",
    least=1,
)
EPOCH_LATENCY_TARGET = ConfigOption(
    "ekorn.epoch.latency-target",
    parse_duration_ms,
    500,
    unit="ms",
    sentence="The target duration of an epoch under backlog in a job that processes few records per second. The "
    "target grows with the rate, up to `ekorn.epoch.target-ms` at 20,000 records per second. "
    "Shorter epochs lower the throughput, because each epoch has a fixed cost.",
    check=at_least(1),
)
EPOCH_SOURCE_BYTES = ConfigOption(
    "ekorn.epoch.source-bytes",
    parse_memory_bytes,
    64 << 20,
    unit="bytes",
    sentence="The maximum number of bytes that a source subtask reads in one epoch, estimated from a sample of its "
    "records.",
    check=at_least(1),
)
EPOCH_STALL_TIMEOUT = millis(
    "ekorn.epoch.stall-timeout",
    60_000,
    "How long an epoch may make no progress outside user code before the job restarts. The driver "
    "checks it at every heartbeat.",
)
BLOB_BYTES = ConfigOption(
    "ekorn.exchange.blob-size",
    parse_memory_bytes,
    8 << 20,
    unit="bytes",
    sentence="The size at which a blob, the buffered output of one subtask to another, is sent.",
    check=within(1024, 1 << 29),
)
MAX_RECORD_BYTES = ConfigOption(
    "ekorn.exchange.max-record-size",
    parse_memory_bytes,
    1 << 30,
    unit="bytes",
    sentence="The largest pickled record that may be sent to another subtask or to the driver.",
    check=within(1024, 1 << 30),  # Spark's Python serializer stops at 2 GiB
)
SLOT_MEMORY = ConfigOption(
    "ekorn.exchange.slot-memory",
    parse_memory_bytes,
    64 << 20,
    unit="bytes",
    sentence="How much input of an epoch a slot buffers in memory until its subtasks read it. Further input is "
    "written to local disk.",
    check=at_least(0),
)
COLLECT_BUFFER = ConfigOption(
    "ekorn.collect.buffer-size",
    parse_memory_bytes,
    64 << 20,
    unit="bytes",
    sentence="How much output `execute_and_collect` buffers in the driver's memory. The job waits while the "
    "buffer is full.",
    check=at_least(1),
)
BATCH_RECORDS_IN_MEMORY = count(
    "ekorn.batch.records-in-memory",
    500_000,
    "How many records of one input a subtask sorts or holds in memory in BATCH mode. Further records "
    "are written to disk.",
    least=1,
)
ASYNC_LINGER = millis(
    "ekorn.async-io.linger",
    50,
    "How long the end of an epoch waits for asynchronous requests. Results that arrive later are emitted in the next "
    "epoch.",
)
TASK_CANCELLATION_INTERVAL = millis("task.cancellation.interval", 30_000, "Accepted without effect.")
TASK_CANCELLATION_TIMEOUT = millis("task.cancellation.timeout", 180_000, "Accepted without effect.")
