"""Options of jobs that adapt their own parallelism: reactive mode and the autoscaler."""

from __future__ import annotations

from typing import Literal

from ekorn.config.option import ConfigOption
from ekorn.config.options.kinds import choice, count, flag, millis, within

SCHEDULER_MODE: ConfigOption[Literal["default", "reactive"]] = choice(
    "scheduler-mode",
    "default",
    ("default", "reactive"),
    "With `reactive`, the parallelism of a job follows the number of tasks that Spark can run at the same time.",
)
PRELOAD = flag(
    "ekorn.rescale.preload",
    True,
    "Whether the new slots of a job load its state before a rescale switches to them. Meanwhile, both "
    "sets of slots need memory.",
)
RESCALE_COOLDOWN = millis(
    "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling",
    30_000,
    "How long a job in reactive mode keeps its parallelism after a rescale.",
    "jobmanager.adaptive-scheduler.scaling-interval.min",
)
RESOURCE_STABILIZATION = millis(
    "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout",
    60_000,
    "How long the number of tasks that Spark can run must stay the same before a job in reactive mode is rescaled.",
    "jobmanager.adaptive-scheduler.resource-stabilization-timeout",
)
AUTOSCALER = flag("job.autoscaler.enabled", False, "Whether the parallelism of a job follows its load.")
AUTOSCALER_TARGET = ConfigOption[float](
    "job.autoscaler.utilization.target",
    float,
    0.7,
    ("job.autoscaler.target.utilization",),
    sentence="The target utilization of the autoscaler: the share of time in which the job is busy.",
    check=within(0.01, 1.0),
)
AUTOSCALER_BOUNDARY = ConfigOption[float](
    "job.autoscaler.target.utilization.boundary",
    float,
    0.3,
    sentence="How far the utilization may deviate from its target before the job is rescaled.",
    check=within(0.0, 1.0),
)
AUTOSCALER_STABILIZATION = millis(
    "job.autoscaler.stabilization.interval",
    300_000,
    "How long the autoscaler waits after a job starts, and after each rescale.",
)
AUTOSCALER_WINDOW = millis(
    "job.autoscaler.metrics.window", 900_000, "The time over which the autoscaler averages the utilization."
)
AUTOSCALER_MIN_PARALLELISM = count(
    "job.autoscaler.vertex.min-parallelism", 1, "The lowest parallelism that the autoscaler chooses.", least=1
)
AUTOSCALER_MAX_PARALLELISM = count(
    "job.autoscaler.vertex.max-parallelism",
    200,
    "The highest parallelism that the autoscaler chooses. It never exceeds the maximum parallelism of the job.",
    least=1,
)
