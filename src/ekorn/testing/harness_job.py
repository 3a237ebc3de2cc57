"""The job behind a harness: deployed on the local engine, with one epoch for each step of the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ekorn.checkpoint.metadata import CheckpointMetadata, assemble
from ekorn.checkpoint.metadata_file import decode_metadata, encode_metadata
from ekorn.checkpoint.restore_plan import apply_max_parallelism, plan_restore
from ekorn.clock import ManualClock
from ekorn.config.configuration import Configuration
from ekorn.engine.protocol import Failure
from ekorn.errors import CheckpointError, UserFunctionError
from ekorn.operators.epoch import EpochOrder
from ekorn.operators.operator import RuntimeOperator
from ekorn.program.environment.stream_execution_environment import StreamExecutionEnvironment
from ekorn.slot_protocol.deployment import Deployment
from ekorn.slot_protocol.slot_events import SnapshotNotWritten, SnapshotWritten
from ekorn.testing.drawn_job import drawn_job
from ekorn.testing.local_engine import LocalEngine

_ANY_SIZE = 1 << 62
_IN_MEMORY = "memory:/harness"


@dataclass(frozen=True)
class Scale:
    """The parallelism and maximum parallelism of a job."""

    parallelism: int = 1
    max_parallelism: int | None = None


class HarnessJob:
    """One attempt of a job, fresh or restored from a snapshot. A failure ends it."""

    def __init__(
        self,
        draw: Callable[[StreamExecutionEnvironment], None],
        scale: Scale,
        clock: ManualClock,
        configuration: Configuration | None,
        snapshot: bytes | None = None,
    ) -> None:
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        env.set_parallelism(scale.parallelism)
        if scale.max_parallelism is not None:
            env.set_max_parallelism(scale.max_parallelism)
        env.enable_checkpointing(1000)  # checkpoints are taken by `snapshot` alone
        draw(env)
        graph, settings = drawn_job(env, "harness")
        restored = None if snapshot is None else decode_metadata(snapshot, "the snapshot given to restore()")
        if restored is not None:
            graph = apply_max_parallelism(graph, restored)
        self._clock = clock
        self._epoch = 0
        self._checkpoint_id = 0 if restored is None else restored.checkpoint_id
        self._open_loops: frozenset[int] | None = None
        self.failed = False
        self.deployment = Deployment(
            job_id=str(settings.job_id),
            graph=graph,
            attempt=0,
            inline_threshold_bytes=_ANY_SIZE,
            max_state_bytes=_ANY_SIZE,
            acknowledged_bytes=_ANY_SIZE,
            state_backend=settings.state_backend,
            incremental=False,
            asynchronous=False,
            restore=None if restored is None else plan_restore(graph, restored, _IN_MEMORY),
        )
        self._engine = LocalEngine(graph, clock)
        self._raise(self._engine.deploy(self.deployment))

    def run_epoch(self, checkpoint_id: int | None = None) -> None:
        """Push the records to be read and the timers that are due through the whole pipeline.

        Raises:
            Exception: The exception of the user's code, with a note that names the operator and the record.
        """
        order = EpochOrder(self._epoch, checkpoint_id=checkpoint_id, open_loops=self._open_loops)
        self._epoch += 1
        result = self._engine.run_epoch(order)
        self._raise(result.failure)
        self._open_loops = frozenset(loop for ack in result.acks for loop in ack.open_loops)

    def snapshot(self) -> bytes:
        """Take a checkpoint, complete it, and return its encoded metadata with all state inside."""
        self._checkpoint_id += 1
        self.run_epoch(self._checkpoint_id)
        metadata = self._assembled()
        self._raise(self._engine.notify_completed(self._checkpoint_id))
        return encode_metadata(metadata)

    def _assembled(self) -> CheckpointMetadata:
        events = self._engine.events()
        written = [event.snapshot for event in events if isinstance(event, SnapshotWritten)]
        lost = [event for event in events if isinstance(event, SnapshotNotWritten)]
        if lost:
            self._raise(Failure(lost[0].error or CheckpointError(f"the snapshot could not be taken: {lost[0].why}")))
        return assemble(
            self.deployment.graph,
            job_id=self.deployment.job_id,
            checkpoint_id=self._checkpoint_id,
            timestamp_ms=self._clock.now_ms(),
            snapshots=written,
        )

    def operators(self) -> Iterator[RuntimeOperator]:
        """Yield every operator of every subtask, in the order of the graph."""
        subtasks = {id: subtask for host in self._engine.hosts for id, subtask in host.subtasks.items()}
        for id in sorted(subtasks):
            yield from subtasks[id].operators

    def close(self) -> None:
        """Close the functions, and raise their errors unless the job has failed before."""
        failure = None if self.failed else self._engine.close_subtasks()
        self._engine.shutdown()
        self._raise(failure)

    def discard(self) -> None:
        """Close the functions as after a crash, and ignore their errors."""
        self.failed = True
        self._engine.shutdown()

    def _raise(self, failure: Failure | None) -> None:
        if failure is None:
            return
        self.failed = True
        error = failure.error
        if isinstance(error, UserFunctionError) and error.__cause__ is not None:
            cause = error.__cause__
            cause.add_note(str(error).splitlines()[0])
            raise cause
        raise error
