"""Options of metrics. The keys of one reporter are declared in `tamias.config.reporter_settings`."""

from __future__ import annotations

from tamias.config.options.kinds import comma_list

METRICS_REPORTERS = comma_list(
    "metrics.reporters", "The names of the metric reporters that run; without it, every reporter with a factory class."
)
