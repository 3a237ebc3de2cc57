"""Performs what the checkpoint coordinator decides: metadata is written, subtasks are notified, files are deleted."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from ekorn.checkpoint import events
from ekorn.checkpoint.checkpoint_directory import CheckpointDirectory
from ekorn.checkpoint.coordinator import CheckpointCoordinator
from ekorn.checkpoint.metadata import CheckpointMetadata, assemble
from ekorn.driver.checkpoints.checkpoint_positions import CheckpointPositions
from ekorn.driver.checkpoints.checkpoint_requests import CheckpointRequests
from ekorn.driver.checkpoints.retained_checkpoints import RetainedCheckpoints
from ekorn.driver.checkpoints.savepoint_requests import SavepointRequest, SavepointRequests
from ekorn.driver.loop.interrupts import AttemptFailed, raise_failure
from ekorn.driver.loop.job import Job
from ekorn.driver.output.job_output import JobOutput
from ekorn.driver.recovery.job_recovery import JobRecovery
from ekorn.engine.protocol import Engine, Failure
from ekorn.errors import CheckpointError, Fenced
from ekorn.faults import point

__all__ = ["CheckpointActions"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Written:
    """The newest checkpoint whose metadata was written."""

    metadata: CheckpointMetadata
    size_bytes: int
    duration_ms: int


@dataclass
class CheckpointActions:
    """Performs the coordinator's actions in the order given, on the loop's thread, between epochs."""

    job: Job
    engine: Engine
    coordinator: CheckpointCoordinator
    directory: CheckpointDirectory
    recovery: JobRecovery
    retained: RetainedCheckpoints
    savepoints: SavepointRequests
    requests: CheckpointRequests
    positions: CheckpointPositions
    output: JobOutput
    _written: _Written | None = None

    def perform(self, actions: list[events.Action], *, failing: bool = False) -> None:
        """Perform actions.

        Args:
            actions: What the coordinator decided.
            failing: The attempt has failed, so the slots are not told.
        """
        for action in actions:
            match action:
                case events.WriteMetadata():
                    self.perform(self.coordinator.handle(self._write_metadata(action)))
                case events.NotifyComplete(checkpoint_id):
                    request = self.savepoints.complete(checkpoint_id)
                    if request is None:
                        self._complete_checkpoint(checkpoint_id)
                    else:
                        self._complete_savepoint(checkpoint_id, request)
                case events.NotifyAborted(checkpoint_id, why):
                    self._abort(checkpoint_id, why, failing=failing)
                case events.DiscardFiles(checkpoint_id, paths, directory):
                    if not self.savepoints.remove_aborted(checkpoint_id):
                        self.retained.discard(checkpoint_id, paths, whole=directory)
                case events.RefuseRequest(request_id, why):
                    self.savepoints.refuse(request_id, why)
                    self.requests.refuse(request_id, why)
                case events.FailJob(why, error):
                    raise AttemptFailed(Failure(error or CheckpointError(why)))
                case events.StartCheckpoint():
                    raise AssertionError("only the start of an epoch starts a checkpoint")

    def _write_metadata(self, action: events.WriteMetadata) -> events.MetadataWritten | events.MetadataFailed:
        steady = self.job.steady
        metadata = assemble(
            self.job.graph,
            job_id=str(self.job.settings.job_id),
            checkpoint_id=action.checkpoint_id,
            timestamp_ms=action.triggered_ms,
            snapshots=action.snapshots,
            finished=action.finished,
            kind=action.kind,
            term=self.directory.term,
        )
        try:
            point("before-metadata")
            request = self.savepoints.in_flight(action.checkpoint_id)
            if request is not None:
                self._publish_savepoint(request, metadata)
            else:
                metadata = self.directory.complete(metadata)
        except Fenced as error:
            raise AttemptFailed(Failure(error)) from error
        except (OSError, CheckpointError) as error:
            return events.MetadataFailed(action.checkpoint_id, str(error), steady.now_ms())
        point("after-metadata")
        size_bytes = sum(s.bytes_written for s in action.snapshots)
        self._written = _Written(metadata, size_bytes, steady.now_ms() - action.triggered_ms)
        return events.MetadataWritten(action.checkpoint_id, steady.now_ms())

    def _publish_savepoint(self, request: SavepointRequest, metadata: CheckpointMetadata) -> None:
        assert request.target is not None
        self.directory.check_owner()
        request.target.check(metadata)
        request.target.publish(metadata, self.directory.signing_key)
        # Sinks commit with the savepoint that the job ends with, so after a failure nothing older may be restored.
        if request.commits or not self.job.settings.checkpoints.prefer_checkpoint_for_recovery:
            self.recovery.note_savepoint(metadata.checkpoint_id, request.target.files)
        self.directory.check_owner()  # as with checkpoints: before the savepoint is announced

    def _complete_checkpoint(self, checkpoint_id: int) -> None:
        assert self._written is not None
        written = self._written
        position = self.positions.take_completed(checkpoint_id, self.savepoints.in_flight)
        progress = self.job.view.progress()
        self.job.view.update(
            replace(
                progress,
                checkpoints_completed=progress.checkpoints_completed + 1,
                last_checkpoint_id=checkpoint_id,
                last_checkpoint_bytes=written.size_bytes,
                last_checkpoint_ms=written.duration_ms,
                last_checkpoint_path=f"{self.directory.url}/chk-{checkpoint_id}",
            )
        )
        self.job.statistics.checkpoints.complete(checkpoint_id, f"{self.directory.url}/chk-{checkpoint_id}")
        size, took_ms = written.size_bytes, written.duration_ms
        self.job.log.info(
            _log, "checkpoint %d of job %s completed: %d bytes in %d ms", checkpoint_id, self.job.name, size, took_ms
        )
        self.retained.add(written.metadata, pending=self.coordinator.pending_ids, newest_id=self.coordinator.newest_id)
        self.job.statistics.checkpoints.keep(self.retained.retained_ids)
        self.output.commit(position)
        point("before-notify")
        failure = self.engine.notify_completed(checkpoint_id)
        self.requests.complete(checkpoint_id)  # also if a slot could not be told: the checkpoint exists
        raise_failure(failure)
        point("notified")

    def _complete_savepoint(self, checkpoint_id: int, request: SavepointRequest) -> None:
        position = self.positions.take_savepoint(checkpoint_id)
        view, path = self.job.view, request.path
        progress = view.progress()
        completed = progress.savepoints_completed + 1
        stopped_with = path if request.commits else None
        view.update(
            replace(progress, savepoints_completed=completed, last_savepoint_path=path, stopped_with=stopped_with)
        )
        self.job.statistics.checkpoints.complete(checkpoint_id, path)
        request.answer()
        self.job.log.info(_log, "savepoint %d of job %s completed: %s", checkpoint_id, self.job.name, path)
        if request.commits:
            self.output.commit(position)
            raise_failure(self.engine.notify_completed(checkpoint_id))
        elif request.then == "cancel":
            self.job.requests.cancel()
        else:
            # Flink: a savepoint after which the job keeps running commits nothing. A restart may not be able to go
            # back to it, since its owner may dispose of it.
            self.positions.keep_savepoint(checkpoint_id, position)

    def _abort(self, checkpoint_id: int, why: str, *, failing: bool) -> None:
        is_savepoint = self.savepoints.abort(checkpoint_id, why)
        self.requests.abort(checkpoint_id, why)
        self.job.statistics.checkpoints.fail(checkpoint_id, why)
        what = "savepoint" if is_savepoint else "checkpoint"
        level = logging.INFO if failing else logging.WARNING
        self.job.log.write(_log, level, "%s %d of job %s was aborted: %s", what, checkpoint_id, self.job.name, why)
        self.positions.drop(checkpoint_id)
        if not is_savepoint:
            progress = self.job.view.progress()
            self.job.view.update(replace(progress, checkpoints_failed=progress.checkpoints_failed + 1))
        if not failing:
            raise_failure(self.engine.notify_aborted(checkpoint_id))
