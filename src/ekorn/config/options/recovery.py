"""Options of recovery after a failure: restart strategies, failover, heartbeats."""

from __future__ import annotations

from typing import Literal

from ekorn.config.option import ConfigOption
from ekorn.config.options.kinds import choice, count, millis, text, within
from ekorn.config.value_text import parse_float

RESTART_STRATEGY = text(
    "restart-strategy.type",
    "The restart strategy: `none`, `fixed-delay`, `failure-rate` or `exponential-delay`. If the key is not set, it is "
    "`exponential-delay` for jobs with checkpoints, and `none` for others.",
    "restart-strategy",
)
FIXED_DELAY_ATTEMPTS = count("restart-strategy.fixed-delay.attempts", 1, "The maximum number of restarts.")
FIXED_DELAY_DELAY = millis("restart-strategy.fixed-delay.delay", 1000, "The delay before each restart.")
FAILURE_RATE_MAX = count(
    "restart-strategy.failure-rate.max-failures-per-interval",
    1,
    "The maximum number of failures within the interval. One more fails the job.",
    least=1,
)
FAILURE_RATE_INTERVAL = millis(
    "restart-strategy.failure-rate.failure-rate-interval", 60_000, "The interval in which failures are counted."
)
FAILURE_RATE_DELAY = millis("restart-strategy.failure-rate.delay", 1000, "The delay before each restart.")
EXPONENTIAL_INITIAL = millis(
    "restart-strategy.exponential-delay.initial-backoff", 1000, "The delay before the first restart."
)
EXPONENTIAL_MAX = millis(
    "restart-strategy.exponential-delay.max-backoff", 60_000, "The maximum delay before a restart."
)
EXPONENTIAL_MULTIPLIER = ConfigOption(
    "restart-strategy.exponential-delay.backoff-multiplier",
    parse_float,
    1.5,
    sentence="The factor by which the delay grows with each restart.",
    check=lambda value: None if value > 1 else "must be greater than 1",
)
EXPONENTIAL_RESET = millis(
    "restart-strategy.exponential-delay.reset-backoff-threshold",
    3_600_000,
    "How long a job must run without a failure before the delay is reset to its initial value.",
)
EXPONENTIAL_JITTER = ConfigOption(
    "restart-strategy.exponential-delay.jitter-factor",
    parse_float,
    0.1,
    sentence="The random variation of each delay, as a fraction of the delay.",
    check=within(0, 1),
)
EXPONENTIAL_ATTEMPTS = count(
    "restart-strategy.exponential-delay.attempts-before-reset-backoff",
    2**31 - 1,
    "The maximum number of failures in a row, before the delay is reset. One more fails the job.",
)
ITERATION_ATTEMPTS = count(
    "ekorn.dataset.iteration-attempts",
    4,
    "The maximum number of attempts at an iteration of a DataSet program. If a slot or executor is lost in "
    "the last attempt, the program fails.",
    least=1,
)
FAILOVER_STRATEGY: ConfigOption[Literal["region", "full"]] = choice(
    "jobmanager.execution.failover-strategy",
    "region",
    ("region", "full"),
    "The part of a job that restarts after a failure: the region that failed (`region`), or the whole job (`full`).",
)
HEARTBEAT_INTERVAL = millis(
    "heartbeat.interval", 10_000, "The interval at which a slot sends heartbeats to the driver."
)
HEARTBEAT_TIMEOUT = millis(
    "heartbeat.timeout", 50_000, "How long a slot may send no heartbeat before the driver replaces it."
)
