"""Options of metrics."""

from __future__ import annotations

from typing import Literal

from ekorn.config.option import ConfigOption
from ekorn.config.options.kinds import choice, comma_list, count, flag, millis

METRICS_REPORTERS = comma_list(
    "metrics.reporters", "The names of the metric reporters that run; without it, every reporter with a factory class."
)
LATENCY_TRACKING_INTERVAL = millis(
    "metrics.latency.interval", 0, "How often the latency from source to operator is taken, of a mark; 0 is off."
)
LATENCY_GRANULARITY: ConfigOption[Literal["single", "operator", "subtask"]] = choice(
    "metrics.latency.granularity",
    "operator",
    ("single", "operator", "subtask"),
    "Whether latencies tell nothing (`single`), sources (`operator`) or also their subtasks (`subtask`) apart.",
)
LATENCY_HISTORY = count(
    "metrics.latency.history-size", 128, "Over how many of the latest latencies percentiles are.", least=1
)
STATE_LATENCY_ENABLED = flag(
    "state.latency-track.keyed-state-enabled",
    False,
    "Whether some accesses to keyed state are timed.",
    "state.backend.latency-track.keyed-state-enabled",
)
STATE_LATENCY_EVERY = count(
    "state.latency-track.sample-interval",
    100,
    "Each access of this number is timed.",
    "state.backend.latency-track.sample-interval",
    least=1,
)
STATE_LATENCY_HISTORY = count(
    "state.latency-track.history-size",
    128,
    "Over how many of the latest accesses percentiles are.",
    "state.backend.latency-track.history-size",
    least=1,
)
STATE_LATENCY_NAME_AS_VARIABLE = flag(
    "state.latency-track.state-name-as-variable",
    True,
    "Whether the name of a state is a variable of the metric (`state_name`), and not the group itself.",
    "state.backend.latency-track.state-name-as-variable",
)
