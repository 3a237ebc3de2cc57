"""A coordinator that a test drives: the times, the ids and the answers are the test's."""

from ekorn.checkpoint.coordinator import CheckpointCoordinator
from ekorn.checkpoint.events import (
    EpochStarting,
    JobStarted,
    MetadataWritten,
    SnapshotDone,
    SnapshotFailed,
    StartCheckpoint,
    Tick,
)
from ekorn.checkpoint.schedule import CoordinatorSettings
from ekorn.graph.addresses import SubtaskId
from ekorn.state.snapshots import KeyedFiles, OperatorSnapshot, StateFile, StateInfo, SubtaskSnapshot

A, B = SubtaskId(0, 0), SubtaskId(0, 1)


def snapshot(subtask, *paths, finished=False, union=False):
    """Return a snapshot of a subtask that holds these files."""
    files = tuple(StateFile(size=1, crc32=0, path=path) for path in paths)
    states = (StateInfo("offsets", "list-union"),) if union else ()
    operator = OperatorSnapshot("op", "uid", "source", keyed=KeyedFiles(0, 127, files), states=states)
    return SubtaskSnapshot(subtask.vertex, subtask.subtask, operators=(operator,), finished=finished, bytes_written=10)


class Driven:
    """A coordinator of a job that runs, told what happens call by call. Every method returns the actions."""

    def __init__(self, *subtasks, start_ms=0, first_id=1, **settings):
        self.coordinator = CheckpointCoordinator(
            subtasks or (A, B), CoordinatorSettings(**{"interval_ms": 1000, **settings}), first_id=first_id
        )
        assert self.coordinator.handle(JobStarted(start_ms)) == []

    def epoch(self, now_ms):
        return self.coordinator.handle(EpochStarting(now_ms))

    def tick(self, now_ms):
        return self.coordinator.handle(Tick(now_ms))

    def answer(self, checkpoint_id, subtask, now_ms=0, **kwargs):
        value = snapshot(subtask, f"shared/{checkpoint_id}-{subtask[1]}", **kwargs)
        return self.coordinator.handle(SnapshotDone(checkpoint_id, value, now_ms))

    def written(self, checkpoint_id, now_ms=0):
        return self.coordinator.handle(MetadataWritten(checkpoint_id, now_ms))

    def fail(self, checkpoint_id, now_ms=0, why="disk full"):
        return self.coordinator.handle(SnapshotFailed(checkpoint_id, B, why, now_ms))

    def started(self, now_ms):
        """Return the id of the checkpoint that an epoch at this time starts, or None."""
        return next((a.checkpoint_id for a in self.epoch(now_ms) if isinstance(a, StartCheckpoint)), None)

    def complete(self, checkpoint_id, now_ms=0):
        """Let both subtasks answer and the metadata be written."""
        for subtask in (A, B):
            self.answer(checkpoint_id, subtask, now_ms)
        return self.written(checkpoint_id, now_ms)


def kinds(actions):
    """Return the classes of the actions."""
    return [type(action) for action in actions]
