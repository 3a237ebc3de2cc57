"""Options of epochs, and of what passes between subtasks: sizes, memory, timeouts."""

from __future__ import annotations

from typing import Literal

from ekorn.config.option import ConfigOption
from ekorn.config.options.kinds import at_least, choice, count, flag, millis, within
from ekorn.config.value_text import parse_duration_ms, parse_memory_bytes

EXECUTION: ConfigOption[Literal["epochs", "continuous", "auto"]] = choice(
    "ekorn.execution",
    "epochs",
    ("epochs", "continuous", "auto"),
    "How Spark runs a job: one Spark job per epoch; or Spark jobs as long as an attempt, with milliseconds from "
    "source to sink; or continuously if Spark 4.3, the session and the job allow it. BATCH, loops and queries of Spark "
    "as sources always "
    "run in epochs.",
)
BUFFER_TIMEOUT = millis(
    "execution.buffer-timeout.interval",
    100,
    "How long output may wait to be sent together with more.",
    "execution.buffer-timeout",
)
BUFFER_TIMEOUT_ENABLED = flag(
    "execution.buffer-timeout.enabled",
    True,
    "Whether the buffer timeout holds; if not, output waits for a full blob.",
)
EPOCH_TARGET = count(
    "ekorn.epoch.target-ms", 2_000, "How many milliseconds an epoch may take while sources have a backlog.", least=1
)
EPOCH_LATENCY_TARGET = ConfigOption(
    "ekorn.epoch.latency-target",
    parse_duration_ms,
    500,
    unit="ms",
    sentence="How long an epoch may take while sources have a backlog in a job that processes few records a second; "
    "from 20,000 a second on it may take ekorn.epoch.target-ms. Shorter epochs process less, because each has a fixed "
    "cost.",
    check=at_least(1),
)
EPOCH_SOURCE_BYTES = ConfigOption(
    "ekorn.epoch.source-bytes",
    parse_memory_bytes,
    64 << 20,
    unit="bytes",
    sentence="How many bytes a source subtask may read in one epoch, as estimated from a sample of its records.",
    check=at_least(1),
)
EPOCH_STALL_TIMEOUT = millis(
    "ekorn.epoch.stall-timeout",
    60_000,
    "How long an epoch may make no progress outside user code before the job restarts; noticed at the next heartbeat.",
)
BLOB_BYTES = ConfigOption(
    "ekorn.exchange.blob-size",
    parse_memory_bytes,
    8 << 20,
    unit="bytes",
    sentence="The size at which a subtask's output to another subtask is sent.",
    check=within(1024, 1 << 29),
)
MAX_RECORD_BYTES = ConfigOption(
    "ekorn.exchange.max-record-size",
    parse_memory_bytes,
    1 << 30,
    unit="bytes",
    sentence="The largest record that may be sent to another subtask or to the driver, in bytes when pickled.",
    check=within(1024, 1 << 30),  # Spark's Python serializer stops at 2 GiB
)
SLOT_MEMORY = ConfigOption(
    "ekorn.exchange.slot-memory",
    parse_memory_bytes,
    64 << 20,
    unit="bytes",
    sentence="How much of an epoch's input a slot keeps in memory until it is read; the rest waits on local disk.",
    check=at_least(0),
)
COLLECT_BUFFER = ConfigOption(
    "ekorn.collect.buffer-size",
    parse_memory_bytes,
    64 << 20,
    unit="bytes",
    sentence="How much execute_and_collect holds in memory; the job waits while the program has not read that much.",
    check=at_least(1),
)
BATCH_RECORDS_IN_MEMORY = count(
    "ekorn.batch.records-in-memory",
    500_000,
    "In BATCH mode, how many records of an input a subtask sorts or holds in memory before it writes them to disk.",
    least=1,
)
ASYNC_LINGER = millis(
    "ekorn.async-io.linger",
    50,
    "How long the end of an epoch waits for asynchronous requests; later answers leave in the next epoch.",
)
TASK_CANCELLATION_INTERVAL = millis(
    "task.cancellation.interval", 30_000, "The interval at which a cancelled subtask is interrupted."
)
TASK_CANCELLATION_TIMEOUT = millis(
    "task.cancellation.timeout", 180_000, "How long cancelling may take before the slot is ended; 0 is no limit."
)
