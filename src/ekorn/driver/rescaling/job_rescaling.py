"""A change of a job's parallelism while the job runs: what happens beside its records, and what is remembered of it.

accept     the graph is drawn at the new parallelism; a request that cannot be met is refused, and nothing changes
attend     slots start and a checkpoint is taken in the background, while records flow; then slots read its state
is_ready   all that is done: `RescaleSwitch` takes the last checkpoint and ends the attempt
begin      the next attempt has the new graph, and restores that checkpoint
settle     its first epoch has ended: the request is answered
go_back    it has failed: the next attempt has the graph before, and restores the same checkpoint
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field, replace

from ekorn.config.options import MOST_SLOTS
from ekorn.driver.checkpoints.checkpoint_requests import CheckpointRequest
from ekorn.driver.checkpoints.job_checkpoints import JobCheckpoints
from ekorn.driver.loop.job import Job
from ekorn.driver.output.job_output import JobOutput
from ekorn.driver.rescaling.rescale_requests import RescaleRequest
from ekorn.driver.statistics.job_statistics import VertexChange
from ekorn.engine.protocol import Engine
from ekorn.errors import EkornError, RescaleError
from ekorn.functions.results.job_status import JobStatus
from ekorn.graph.job_graph import JobGraph
from ekorn.graph.redrawing import carried_over

__all__ = ["Rescaling"]

_log = logging.getLogger(__name__)


@dataclass
class _Preparation:
    """The preparation of a rescale on another thread."""

    done: threading.Event = field(default_factory=threading.Event)
    error: Exception | None = None


@dataclass
class _Change:
    """A rescale that was accepted and not answered yet.

    Attributes:
        newest_id: The newest checkpoint that was begun before the rescale was accepted.
        began_ms: When it was accepted, in milliseconds since 1970.
        background: The checkpoint that is taken while records flow.
        preloading: The slots read the state of that checkpoint, or a newer one; None: not yet, or they need not.
        before: The graph before the switch; None until the switch.
        path: The checkpoint of the switch.
        stands_since: When the last epoch at the old parallelism had ended.
    """

    request: RescaleRequest
    graph: JobGraph
    newest_id: int
    began_ms: int
    background: CheckpointRequest = field(default_factory=CheckpointRequest)
    preparation: _Preparation = field(default_factory=_Preparation)
    preloading: _Preparation | None = None
    before: JobGraph | None = None
    path: str = ""
    stands_since: float = 0.0


class Rescaling:
    """The rescales of one job, one at a time. The loop's thread uses it.

    Attributes:
        parallelism: The parallelism of operators whose parallelism the program does not set.
    """

    def __init__(self, job: Job, engine: Engine, checkpoints: JobCheckpoints, output: JobOutput) -> None:
        self._job = job
        self._engine = engine
        self._checkpoints = checkpoints
        self._output = output
        self._most_slots = job.settings.most_slots
        self.parallelism = job.settings.parallelism
        self._change: _Change | None = None
        self._preparing = threading.Lock()  # held by the thread that calls the engine's `prepare`

    # -------------------------------------------------------------------------------------------- beside the records

    def accept(self, request: RescaleRequest, *, stopping: bool) -> None:
        """Begin a rescale, or refuse it. The job is not affected yet.

        Args:
            request: What is wanted.
            stopping: Whether the job is about to end with a savepoint.
        """
        try:
            if stopping:
                raise RescaleError("the job is being stopped with a savepoint")
            graph = self._graph_for(request)
        except EkornError as error:
            now_ms = self._job.clock.now_ms()
            self._job.statistics.rescaled(
                self.parallelism, request.parallelism, request.cause, str(error), began_ms=now_ms
            )
            _log.info(
                "job %s keeps its parallelism: a rescale to %d was refused: %s",
                self._job.name,
                request.parallelism,
                error,
            )
            request.refuse(str(error))
            return
        self._change = change = _Change(request, graph, self._checkpoints.newest_id, self._job.clock.now_ms())
        if self._engine.in_process:
            self._prepare(change)  # there are no processes to start
        else:
            threading.Thread(target=self._prepare, args=(change,), name="ekorn-rescale", daemon=True).start()
        if self._takes_checkpoints:  # the checkpoint of the switch then has little to write
            self._checkpoints.request_checkpoint(change.background)

    def _graph_for(self, request: RescaleRequest) -> JobGraph:
        job = self._job
        if self._change is not None:
            raise RescaleError(f"it is already being rescaled to {self._change.request.parallelism}")
        if job.graph.settings.batch:
            raise RescaleError("a job in BATCH mode has no checkpoints to continue from")
        if request.parallelism < 1:
            raise RescaleError("the parallelism must be at least 1")
        if self._checkpoints.refusal is not None:
            raise RescaleError(self._checkpoints.refusal)
        graph = self.graph_at(request.parallelism, request.most_slots)
        if _parallelisms(graph) == _parallelisms(job.graph):
            raise RescaleError(
                "no operator would change its parallelism; operators keep a parallelism that the program sets"
            )
        return graph

    def graph_at(self, parallelism: int, most_slots: int | None = None) -> JobGraph:
        """Return the graph that the running job would have at another parallelism.

        Args:
            parallelism: The default parallelism.
            most_slots: The slots that it may take; None for as many as the job may take now.

        Raises:
            RescaleError: It was submitted without what draws it, or it needs more slots.
            InvalidProgramError: It cannot run at this parallelism.
        """
        if self._job.settings.graph_at is None:
            raise RescaleError("it was submitted as a graph, without the program that draws it")
        graph = carried_over(self._job.settings.graph_at(parallelism), self._job.graph)
        most = self._most_slots if most_slots is None else most_slots
        if most is not None and graph.slot_count > most:
            raise RescaleError(f"it needs {graph.slot_count} slots, but may use only {most} ({MOST_SLOTS.key})")
        return graph

    @property
    def is_under_way(self) -> bool:
        """Whether a rescale was accepted and has not ended."""
        return self._change is not None

    @property
    def _takes_checkpoints(self) -> bool:
        return self._job.settings.checkpoints.enabled

    def _prepare(self, change: _Change) -> None:
        try:
            with self._preparing:  # the thread of a refused rescale may still be preparing
                self._engine.prepare(change.graph)
        except Exception as error:  # Spark raises many types; each refuses the rescale
            change.preparation.error = error
        change.preparation.done.set()
        self._engine.wake()

    def attend(self) -> None:
        """Refuse a rescale whose preparation has failed; let slots read state when there is a checkpoint for it."""
        change = self._change
        if change is None or change.before is not None or not change.preparation.done.is_set():
            return
        if change.preparation.error is not None:
            self.refuse(str(change.preparation.error))
        elif not self._takes_checkpoints:
            return
        elif self._background_completed(change):
            if self._preloads and change.preloading is None:
                self._begin_preloading(change)
        elif change.background.future.done():
            error = change.background.future.exception()
            if error is not None:
                self.refuse(f"its checkpoint before the switch could not be taken: {error}")

    @property
    def _preloads(self) -> bool:
        """Whether slots read state before the switch. RocksDB opens its files at the switch, without reading them."""
        settings = self._job.settings
        in_files = settings.checkpoints.storage == "filesystem"
        return settings.elasticity.preloads and in_files and settings.state_backend == "hashmap"

    def _begin_preloading(self, change: _Change) -> None:
        change.preloading = _Preparation()
        arguments = change, change.preloading
        if self._engine.in_process:
            self._preload(*arguments)
        else:
            threading.Thread(target=self._preload, args=arguments, name="ekorn-rescale", daemon=True).start()

    def _preload(self, change: _Change, preloading: _Preparation) -> None:
        began = self._job.clock.monotonic()
        try:
            plan = self._checkpoints.plan_for(change.graph)
            with self._preparing:
                if plan is not None and self._change is change:
                    self._engine.preload(change.graph, plan)
        except Exception as error:  # of any type: the deployment reads the state itself
            _log.warning("job %s could not read its state before the switch: %s", self._job.name, error)
        took_ms = (self._job.clock.monotonic() - began) * 1000
        _log.info(
            "job %s has read state for parallelism %d in %d ms", self._job.name, change.request.parallelism, took_ms
        )
        preloading.done.set()
        self._engine.wake()

    def _background_completed(self, change: _Change) -> bool:
        return (self._checkpoints.last_completed_id or 0) > change.newest_id

    @property
    def is_ready(self) -> bool:
        """Whether the switch may begin."""
        change = self._change
        if change is None or change.before is not None or not change.preparation.done.is_set():
            return False
        if change.preparation.error is not None:
            return False  # it came since the last call of `attend`, and the next one refuses the rescale
        if not self._takes_checkpoints:
            return True
        has_preloaded = change.preloading is not None and change.preloading.done.is_set()
        return self._background_completed(change) and (has_preloaded or not self._preloads)

    # ------------------------------------------------------------------------------------------------------ the switch

    @property
    def directory(self) -> str | None:
        """Where the savepoint of the switch goes, if the request says so."""
        return None if self._change is None else self._change.request.directory

    def begin(self, path: str, stands_since: float) -> None:
        """Let the next attempt run at the new parallelism: the attempt before is over.

        Args:
            path: The checkpoint or savepoint that it goes on from.
            stands_since: When the last epoch of the attempt before had ended.
        """
        change = self._change
        assert change is not None, "only an accepted rescale is switched to"
        change.before, change.path, change.stands_since = self._job.graph, path, stands_since
        self._job.log.info(
            _log, "job %s continues from %s with parallelism %d", self._job.name, path, change.request.parallelism
        )
        self._enter_restarting()
        self._take(change.graph)

    def settle(self) -> None:
        """Note that an epoch has ended: if it is the first at a new parallelism, the rescale has succeeded."""
        change = self._change
        if change is None or change.before is None:
            return
        self._change = None
        if change.request.most_slots is not None:
            self._most_slots = change.request.most_slots
        self._note(change, None)
        self.parallelism = change.request.parallelism
        stood_ms = (self._job.clock.monotonic() - change.stands_since) * 1000
        self._job.log.info(
            _log,
            "job %s runs with parallelism %d; it processed nothing for %d ms",
            self._job.name,
            change.request.parallelism,
            stood_ms,
        )
        change.request.complete(change.path)

    @property
    def is_unsettled(self) -> bool:
        """Whether the first epoch at a new parallelism has not ended yet."""
        return self._change is not None and self._change.before is not None

    def go_back(self, why: str) -> None:
        """Return to the graph before: the attempt at the new parallelism has failed before its first epoch ended."""
        assert self._change is not None and self._change.before is not None
        self._enter_restarting()
        self._take(self._change.before)
        self._answer(f"it was rolled back: {why}")  # the next deployment ends the slots that it does not need

    def restart_at(self, parallelism: int, cause: str) -> None:
        """Let the attempt after a failure run at another parallelism. No rescale is under way.

        Raises:
            RescaleError: As `graph_at`.
            InvalidProgramError: As `graph_at`.
        """
        assert self._change is None, "a failure ended it"
        graph, now_ms = self.graph_at(parallelism), self._job.clock.now_ms()
        changes = _changes(self._job.graph, graph)
        self._job.statistics.rescaled(self.parallelism, parallelism, cause, None, began_ms=now_ms, vertices=changes)
        self._job.log.info(_log, "job %s restarts with parallelism %d: %s", self._job.name, parallelism, cause)
        self.parallelism = parallelism
        self._take(graph)

    def fail(self, why: str) -> None:
        """Refuse a rescale that is under way: the job has failed."""
        if self._change is not None:
            self.refuse(f"the job failed: {why}")

    def refuse(self, why: str) -> None:
        """Answer that the job keeps its parallelism, and release the prepared slots."""
        change = self._answer(why)
        threading.Thread(target=self._release, args=(change,), name="ekorn-rescale", daemon=True).start()

    def _answer(self, why: str) -> _Change:
        change, self._change = self._change, None
        assert change is not None
        self._job.log.warning(
            _log, "job %s was not rescaled to %d: %s", self._job.name, change.request.parallelism, why
        )
        self._note(change, why)
        change.request.refuse(why)
        return change

    def _release(self, change: _Change) -> None:
        change.preparation.done.wait()
        try:
            with self._preparing:
                if self._change is None:  # else the next rescale releases what it does not need
                    self._engine.prepare(self._job.graph)
        except Exception as error:  # Spark raises many types; the slots end with the job, or with the next rescale
            _log.warning("job %s: slots of an earlier rescale could not be released: %s", self._job.name, error)

    def job_ended(self, status: JobStatus) -> None:
        """Answer a rescale that is under way: the job is over."""
        change, self._change = self._change, None
        if change is not None:
            change.request.refuse(f"the job has ended ({status.name})")

    def _note(self, change: _Change, refusal: str | None) -> None:
        request = change.request
        self._job.statistics.rescaled(
            self.parallelism,
            request.parallelism,
            request.cause,
            refusal,
            began_ms=change.began_ms,
            vertices=_changes(change.before or self._job.graph, change.graph),
        )

    def _take(self, graph: JobGraph) -> None:
        self._job.change_graph(graph)
        self._output.change_graph(graph)

    def _enter_restarting(self) -> None:
        view = self._job.view
        view.update(replace(view.progress(), status=JobStatus.RESTARTING))
        self._job.statistics.enter(JobStatus.RESTARTING)


def _changes(before: JobGraph, wanted: JobGraph) -> tuple[VertexChange, ...]:
    """Return what a rescale changes. A chain that the graph before did not have counts as the one of its operator."""
    had = _parallelisms(before)
    return tuple(
        VertexChange(first.id, vertex.name, vertex.slot_group, had.get(first.id, 0), vertex.parallelism)
        for vertex in wanted.vertices
        for first in vertex.operators[:1]
    )


def _parallelisms(graph: JobGraph) -> dict[str, int]:
    return {operator.id: vertex.parallelism for vertex in graph.vertices for operator in vertex.operators}
