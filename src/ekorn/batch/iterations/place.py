"""Where an iteration runs: on Spark, or in this process in tests."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Protocol

from ekorn.batch.planner.rdds import Rdds, SparkRdds
from ekorn.config import options
from ekorn.config.configuration import Configuration
from ekorn.config.settings.deployment_settings import LinkSettings, PythonDependencies
from ekorn.config.settings.fields import read_settings
from ekorn.config.settings.job_settings import check_heartbeat
from ekorn.engine.slots.slot_handle import Heartbeat
from ekorn.engine.slots.slot_pool import SlotPool
from ekorn.engine.spark.driver_side.slot_start import slots_beside

__all__ = ["IterationPlace", "SparkPlace"]


class IterationPlace(Protocol):
    """What the loop over supersteps needs of the engine."""

    def slots(self, most: int) -> SlotPool:
        """Return a pool of slots for the tables of an iteration: one for each core, and not more than `most`."""
        ...

    def starting_slots(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which slots are started."""
        ...

    def rdds(self, description: str) -> Rdds:
        """Return what makes the RDDs of one superstep."""
        ...


class SparkPlace:
    """Runs iterations on Spark, with slots beside its tasks."""

    def __init__(self, context: Any, configuration: dict[str, str]) -> None:
        self._context = context
        self._configuration = Configuration.from_dict(configuration)
        self._rdds: SparkRdds | None = None

    def slots(self, most: int) -> SlotPool:
        configuration = self._configuration
        interval_ms = options.HEARTBEAT_INTERVAL.read(configuration)
        timeout_ms = options.HEARTBEAT_TIMEOUT.read(configuration)
        check_heartbeat(interval_ms, timeout_ms)
        heartbeat = Heartbeat(interval_s=interval_ms / 1000, timeout_s=timeout_ms / 1000)
        pool = slots_beside(
            self._context,
            min(most, self._context.defaultParallelism),
            read_settings(PythonDependencies, configuration),
            heartbeat,
            read_settings(LinkSettings, configuration),
        )
        group = self._context.getLocalProperty(_GROUP)

        def cancel(number: int) -> None:
            with contextlib.suppress(Exception):  # no job runs, or the session is gone
                self._context.cancelJobGroup(group)  # its tasks wait for an answer that will not come

        pool.on_lost = cancel
        return pool

    @contextlib.contextmanager
    def starting_slots(self) -> Iterator[None]:
        """Put back the job group of this thread, which the start of slots on a cluster replaces."""
        before = {key: self._context.getLocalProperty(key) for key in (_GROUP, _DESCRIPTION, _INTERRUPT)}
        try:
            yield
        finally:
            for key, value in before.items():
                self._context.setLocalProperty(key, value)

    def rdds(self, description: str) -> Rdds:
        self._context.setLocalProperty(_DESCRIPTION, description)
        if self._rdds is None:
            self._rdds = SparkRdds(self._context)
        return self._rdds.again()


_GROUP = "spark.jobGroup.id"
_DESCRIPTION = "spark.job.description"
_INTERRUPT = "spark.job.interruptOnCancel"
