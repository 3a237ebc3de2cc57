"""Lets a running job follow the task slots of its cluster, or its load: observes each second, asks for rescales."""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Iterable
from concurrent.futures import Future

from ekorn.config.settings.elasticity_settings import ReactiveSettings
from ekorn.driver.loop.job import Job
from ekorn.driver.rescaling.autoscaler import Autoscaler, Load
from ekorn.driver.rescaling.job_rescaling import Rescaling
from ekorn.engine.protocol import Engine
from ekorn.errors import InvalidProgramError, RescaleError
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import Vertex

__all__ = ["Elasticity", "LevelLoad", "ReactiveMode"]

_log = logging.getLogger(__name__)

_OBSERVES_MS = 1_000

LevelLoad = Callable[[Iterable[float]], float]


class Elasticity:
    """The rescales that a job asks for by itself. The loop's thread uses it, between epochs.

    Args:
        job: The job.
        engine: Hosts the job's subtasks.
        rescaling: Performs the rescales.
        load: Combines the load of the levels: their sum if they run one after the other, their maximum if they run at
            the same time.
    """

    def __init__(self, job: Job, engine: Engine, rescaling: Rescaling, load: LevelLoad) -> None:
        self._job = job
        self._engine = engine
        self._rescaling = rescaling
        self._load = load
        settings, now_ms = job.settings.elasticity, job.steady.now_ms()
        self._reactive = None if settings.reactive is None else ReactiveMode(settings.reactive, now_ms)
        self._autoscaler = None if settings.autoscaler is None else Autoscaler(settings.autoscaler, now_ms)
        self._is_on = self._reactive is not None or self._autoscaler is not None
        if self._is_on and job.graph.settings.batch:
            self._is_on = False
            _log.warning("job %s keeps its parallelism: in BATCH mode it has no checkpoints to continue from", job.name)
        self._observed_ms = now_ms
        self._parallelism = rescaling.parallelism  # when the job was observed last
        self._asked: Future[str] | None = None
        self._task_slots: int | None = None
        self._fitting = 0  # the parallelism that as many task slots allow

    def attend(self, *, has_backlog: bool) -> None:
        """Observe the job, and ask for a rescale if it needs one.

        Args:
            has_backlog: Whether a source had more to read at the end of the last epoch.
        """
        now_ms = self._job.steady.now_ms()
        if not self._is_on or now_ms - self._observed_ms < _OBSERVES_MS:
            return
        self._observed_ms = now_ms
        if self._rescaling.is_under_way:
            return
        if self._asked is not None or self._parallelism != self._rescaling.parallelism:  # by itself, or by a request
            self._asked, self._parallelism = None, self._rescaling.parallelism
            for each in (self._reactive, self._autoscaler):
                if each is not None:
                    each.rescaled(now_ms)
        if self._reactive is not None:
            self._follow_task_slots(self._reactive, now_ms)
        if self._autoscaler is not None:
            self._follow_load(self._autoscaler, now_ms, has_backlog=has_backlog)

    def shrink_for_restart(self) -> bool:
        """Lower the parallelism of the next attempt to what the task slots allow, in reactive mode; return whether so.

        For a mode in which all tasks of a job run at the same time. An attempt with more tasks than task slots would
        wait a minute for task slots that may never come, and fail.
        """
        task_slots = self._engine.task_slots
        if self._reactive is None or task_slots is None:
            return False
        if self._rescaling.is_under_way or self._engine.needed_task_slots(self._job.graph) <= task_slots:
            return False
        fitting = self._highest_possible(task_slots, task_slots)
        if not 0 < fitting < self._rescaling.parallelism:
            return False
        self._rescaling.restart_at(fitting, f"reactive mode: the cluster has {task_slots} task slots left")
        return True

    def _follow_task_slots(self, mode: ReactiveMode, now_ms: int) -> None:
        task_slots = self._engine.task_slots
        if task_slots is None:
            return
        if task_slots != self._task_slots:
            self._task_slots, self._fitting = task_slots, self._highest_possible(task_slots, task_slots)
        wanted = mode.observe(now_ms, fitting=self._fitting, parallelism=self._parallelism)
        if wanted is not None:
            self._ask(wanted, f"reactive mode: the cluster has {task_slots} task slots")

    def _follow_load(self, autoscaler: Autoscaler, now_ms: int, *, has_backlog: bool) -> None:
        load, now = Load(self._utilization(), has_backlog), self._parallelism
        decision = autoscaler.observe(now_ms, load, now)
        if decision is None:
            return
        wanted = decision.parallelism
        if wanted > now:
            wanted = self._highest_possible(wanted, self._engine.task_slots, above=now)
        if wanted != now:
            self._ask(wanted, f"autoscaler: {decision.reason}")

    def _highest_possible(self, most: int, task_slots: int | None, *, above: int = 0) -> int:
        """Return the highest parallelism that the job can have, up to `most`; `above` if it can have none above that.

        Args:
            most: The highest that is wanted.
            task_slots: The task slots for everything that runs at the same time; None if that is not known.
            above: A parallelism that is not looked at, and none below it.
        """
        candidates = range(above + 1, most + 1)
        return above + bisect_left(candidates, True, key=lambda each: not self._is_possible(each, task_slots))

    def _is_possible(self, parallelism: int, task_slots: int | None) -> bool:
        try:
            graph = self._rescaling.graph_at(parallelism)
        except (InvalidProgramError, RescaleError):
            return False
        return task_slots is None or self._engine.needed_task_slots(graph) <= task_slots

    def _ask(self, parallelism: int, cause: str) -> None:
        _log.info("job %s is to be rescaled from %d to %d: %s", self._job.name, self._parallelism, parallelism, cause)
        self._asked = self._job.requests.request_rescale(parallelism, cause=cause)

    def _utilization(self) -> float:
        """Return the share of its time that the job is busy, from 0 to 1."""
        return min(self._load([max(map(self._busy, level)) for level in self._job.graph.levels]), 1.0)

    def _busy(self, vertex: Vertex) -> float:
        metrics = self._job.statistics.metrics
        busy_ms = [metrics.rates(SubtaskId(vertex.id, index)).busy_ms for index in range(vertex.parallelism)]
        return sum(busy_ms) / len(busy_ms) / 1_000


class ReactiveMode:
    """Waits until the number of task slots has settled, and until the last rescale is long enough ago.

    Args:
        settings: The two times.
        now_ms: When the job started.

    Example:
        >>> mode = ReactiveMode(ReactiveSettings(cooldown_ms=0, stabilization_ms=1000), now_ms=0)
        >>> [mode.observe(now_ms, fitting=4, parallelism=2) for now_ms in (0, 999, 1000)]
        [None, None, 4]
    """

    def __init__(self, settings: ReactiveSettings, now_ms: int) -> None:
        self._settings = settings
        self._rescaled_ms: int | None = None
        self._fitting: int | None = None
        self._since_ms = now_ms

    def observe(self, now_ms: int, *, fitting: int, parallelism: int) -> int | None:
        """Return the parallelism that the job is to have now; None for the one that it has.

        Args:
            now_ms: The time.
            fitting: The highest parallelism that the task slots allow; 0 if they allow none.
            parallelism: The parallelism of the job.
        """
        if fitting != self._fitting:
            self._fitting, self._since_ms = fitting, now_ms
        if fitting < 1 or fitting == parallelism or now_ms - self._since_ms < self._settings.stabilization_ms:
            return None
        if self._rescaled_ms is not None and now_ms - self._rescaled_ms < self._settings.cooldown_ms:
            return None
        return fitting

    def rescaled(self, now_ms: int) -> None:
        """Note that a rescale has ended, whether it succeeded or not."""
        self._rescaled_ms = now_ms
