"""Options of metrics: reporters, and latencies that are measured on request."""

from __future__ import annotations

from typing import Literal

from ekorn.config.option import ConfigOption
from ekorn.config.options.kinds import choice, comma_list, count, flag, millis

METRICS_REPORTERS = comma_list(
    "metrics.reporters",
    "The names of the metric reporters to run. By default, every reporter with a factory class runs.",
)
LATENCY_TRACKING_INTERVAL = millis(
    "metrics.latency.interval",
    0,
    "The interval at which the latency from source to operator is measured; 0 disables it.",
)
LATENCY_GRANULARITY: ConfigOption[Literal["single", "operator", "subtask"]] = choice(
    "metrics.latency.granularity",
    "operator",
    ("single", "operator", "subtask"),
    "How latencies are grouped: all together (`single`), per source (`operator`), or per source subtask (`subtask`).",
)
LATENCY_HISTORY = count(
    "metrics.latency.history-size", 128, "The number of recent latencies from which percentiles are computed.", least=1
)
STATE_LATENCY_ENABLED = flag(
    "state.latency-track.keyed-state-enabled",
    False,
    "Whether a sample of the accesses to keyed state is timed.",
    "state.backend.latency-track.keyed-state-enabled",
)
STATE_LATENCY_EVERY = count(
    "state.latency-track.sample-interval",
    100,
    "The sampling interval: with 100, every hundredth access to keyed state is timed.",
    "state.backend.latency-track.sample-interval",
    least=1,
)
STATE_LATENCY_HISTORY = count(
    "state.latency-track.history-size",
    128,
    "The number of recent timed accesses from which percentiles are computed.",
    "state.backend.latency-track.history-size",
    least=1,
)
STATE_LATENCY_NAME_AS_VARIABLE = flag(
    "state.latency-track.state-name-as-variable",
    True,
    "Whether the name of a state is a variable of the metric (`state_name`). If false, it is part of "
    "the metric's group.",
    "state.backend.latency-track.state-name-as-variable",
)
