"""The coordinator under any sequence of events: its invariants, and that checkpoints always complete again."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ekorn.checkpoint.coordinator import CheckpointCoordinator
from ekorn.checkpoint.events import (
    BarrierPassed,
    CheckpointRequested,
    DiscardFiles,
    EpochStarting,
    FailJob,
    JobFailed,
    JobStarted,
    MetadataFailed,
    MetadataWritten,
    NotifyAborted,
    NotifyComplete,
    SnapshotDone,
    SnapshotFailed,
    StartCheckpoint,
    Tick,
    WriteMetadata,
)
from ekorn.checkpoint.schedule import CoordinatorSettings
from ekorn.graph.addresses import SubtaskId
from ekorn.state.snapshots import KeyedFiles, OperatorSnapshot, StateFile, SubtaskSnapshot
from tests.examples_by_profile import examples

SUBTASKS = frozenset({SubtaskId(0, 0), SubtaskId(0, 1), SubtaskId(1, 0)})


def answer(checkpoint_id, subtask, *, finished):
    file = StateFile(size=1, crc32=0, path=f"shared/{checkpoint_id}-{subtask[0]}-{subtask[1]}")
    operator = OperatorSnapshot("op", None, "op", keyed=KeyedFiles(0, 1, (file,)))
    return SubtaskSnapshot(subtask.vertex, subtask.subtask, operators=(operator,), finished=finished)


class CoordinatorMachine(RuleBasedStateMachine):
    @initialize(
        concurrent=st.integers(1, 3),
        tolerable=st.none() | st.integers(0, 2),
        pause_ms=st.sampled_from([0, 0, 300]),
    )
    def start(self, concurrent, tolerable, pause_ms):
        self.settings = CoordinatorSettings(
            interval_ms=100,
            timeout_ms=1000,
            min_pause_ms=pause_ms,
            max_concurrent=concurrent,
            tolerable_failures=tolerable,
        )
        self.coordinator = CheckpointCoordinator(SUBTASKS, self.settings)
        self.now_ms = 0
        self.running = False
        self.failing = False
        self.started = {}  # id -> (when, participants)
        self.over = {}  # id -> "completed" | "aborted"
        self.answered = {}
        self.writing: Any = None  # the id of the checkpoint whose metadata is being written
        self.failures = 0
        self.finished = set()
        self.completion_ms = None
        self.run_job()

    def handle(self, event):
        before = set(self.open())
        actions = self.coordinator.handle(event)
        for index, action in enumerate(actions):
            match action:
                case StartCheckpoint():
                    assert self.running and not self.failing
                    assert action.checkpoint_id > max(self.started, default=0), "ids only go up"
                    assert action.participants == SUBTASKS - self.finished
                    requested = self.requests_open
                    if requested:
                        self.requests_open -= 1
                    else:
                        assert len(self.open()) < self.settings.concurrent
                        if self.completion_ms is not None:
                            assert self.now_ms >= self.completion_ms + self.settings.pause_ms
                    self.started[action.checkpoint_id] = (self.now_ms, action.participants)
                    self.answered[action.checkpoint_id] = {}
                case WriteMetadata():
                    assert self.writing is None, "one at a time"
                    assert action.checkpoint_id in self.open()
                    assert {(s.vertex, s.subtask) for s in action.snapshots} == self.started[action.checkpoint_id][1]
                    assert action.finished | self.started[action.checkpoint_id][1] == SUBTASKS
                    self.writing = action.checkpoint_id
                case NotifyComplete():
                    assert self.over.setdefault(action.checkpoint_id, "completed") == "completed"
                    assert action.checkpoint_id == max(i for i, o in self.over.items() if o == "completed")
                case NotifyAborted():
                    assert action.checkpoint_id not in self.over
                    assert action.checkpoint_id in before
                    self.over[action.checkpoint_id] = "aborted"
                    if self.running and isinstance(event, (EpochStarting, Tick, SnapshotFailed, MetadataFailed)):
                        self.failures += 1
                    if action.checkpoint_id == self.writing:
                        self.writing = None
                case DiscardFiles():
                    assert self.over.get(action.checkpoint_id) != "completed", "what exists is never deleted"
                    assert all(p.startswith(f"shared/{action.checkpoint_id}-") for p in action.paths)
                    if action.directory:
                        assert self.over[action.checkpoint_id] == "aborted"
                case FailJob():
                    assert index == len(actions) - 1, "nothing is asked of a failing job"
                    assert self.failures - 1 == self.settings.tolerable_failures
                    self.failing, self.failures = True, 0
        tolerable = self.settings.tolerable_failures
        assert tolerable is None or self.failures <= tolerable
        return actions

    def open(self):
        return [i for i in self.started if i not in self.over]

    # ------------------------------------------------------------------------------------------------------- events

    requests_open = 0

    @precondition(lambda self: not self.running)
    @rule(restored=st.booleans())
    def run_job(self, restored=False):
        completed = [i for i, o in self.over.items() if o == "completed"]
        restored_id = max(completed) if restored and completed else None
        self.running, self.failing, self.finished = True, False, set()
        self.requests_open = 0
        self.handle(JobStarted(self.now_ms, restored_id=restored_id))
        assert not self.coordinator.pending_ids

    @precondition(lambda self: self.running)
    @rule()
    def fail_job(self):
        self.handle(JobFailed(self.now_ms))
        self.running = False
        assert self.coordinator.pending_ids <= {self.writing}

    @rule(ms=st.integers(0, 700))
    def let_time_pass(self, ms):
        self.now_ms += ms

    @precondition(lambda self: self.running and not self.failing)
    @rule()
    def start_epoch(self):
        due_ms = self.coordinator.next_due_ms(self.now_ms)
        actions = self.handle(EpochStarting(self.now_ms))
        if any(isinstance(a, (StartCheckpoint, NotifyAborted)) for a in actions):
            assert due_ms is not None and due_ms <= self.now_ms, "the loop was told in time"

    @precondition(lambda self: not self.failing)
    @rule()
    def tick(self):
        self.handle(Tick(self.now_ms))
        if self.running and not self.failing:
            for checkpoint_id in self.open():
                waited = self.now_ms - self.started[checkpoint_id][0]
                assert waited < self.settings.timeout_ms or checkpoint_id == self.writing

    @precondition(lambda self: self.running and not self.failing)
    @rule(forced=st.booleans())
    def request(self, forced):
        self.requests_open += 1
        self.handle(CheckpointRequested(self.now_ms, forced=forced))

    @precondition(lambda self: self.started and not self.failing)
    @rule(data=st.data(), finished=st.booleans())
    def answer(self, data, finished):
        checkpoint_id = data.draw(st.sampled_from(sorted(self.started)[-4:]))
        subtask = data.draw(st.sampled_from(sorted(SUBTASKS)))
        was_open = checkpoint_id in self.open()
        self.handle(SnapshotDone(checkpoint_id, answer(checkpoint_id, subtask, finished=finished), self.now_ms))
        if was_open and subtask in self.started[checkpoint_id][1]:
            self.answered[checkpoint_id].setdefault(subtask, finished)

    @precondition(lambda self: self.open() and not self.failing)
    @rule(data=st.data())
    def answer_all(self, data):
        checkpoint_id = data.draw(st.sampled_from(sorted(self.open())))
        self.handle(BarrierPassed(checkpoint_id, self.now_ms))
        for subtask in sorted(self.started[checkpoint_id][1]):
            if checkpoint_id in self.open():
                self.answered[checkpoint_id].setdefault(subtask, False)
                self.handle(SnapshotDone(checkpoint_id, answer(checkpoint_id, subtask, finished=False), self.now_ms))

    @precondition(lambda self: self.running and not self.failing)
    @rule(gap_ms=st.sampled_from([100, 250, 400, 1100]), outcome=st.sampled_from(["works", "fails", "hangs"]))
    def a_whole_checkpoint(self, gap_ms, outcome):
        """Take a long sequence of steps that random choice seldom reaches."""
        self.now_ms += gap_ms
        actions = self.handle(EpochStarting(self.now_ms))
        for checkpoint_id in [a.checkpoint_id for a in actions if isinstance(a, StartCheckpoint)]:
            for subtask in sorted(self.started[checkpoint_id][1]):
                self.answered[checkpoint_id].setdefault(subtask, False)
                self.handle(SnapshotDone(checkpoint_id, answer(checkpoint_id, subtask, finished=False), self.now_ms))
            if self.writing == checkpoint_id and outcome != "hangs":
                self.now_ms += 50
                self.end_of_writing(works=outcome == "works")

    @precondition(lambda self: self.started and not self.failing)
    @rule(data=st.data())
    def complain(self, data):
        checkpoint_id = data.draw(st.sampled_from(sorted(self.started)[-4:]))
        counts = checkpoint_id in self.open() and checkpoint_id != self.writing and self.running
        actions = self.handle(SnapshotFailed(checkpoint_id, SubtaskId(0, 1), "disk full", self.now_ms))
        assert bool(actions) == counts

    @precondition(lambda self: self.writing is not None)
    @rule(works=st.booleans())
    def end_of_writing(self, works):
        checkpoint_id, self.writing = self.writing, None
        if works:
            self.over[checkpoint_id] = "completed"
            if self.running:
                self.finished |= {s for s, finished in self.answered[checkpoint_id].items() if finished}
            self.completion_ms, self.failures = self.now_ms, 0
            self.handle(MetadataWritten(checkpoint_id, self.now_ms))
            assert not [i for i in self.open() if i < checkpoint_id], "older ones are subsumed"
            assert self.coordinator.last_completed_id == checkpoint_id
        else:
            self.handle(MetadataFailed(checkpoint_id, "quota", self.now_ms))

    @invariant()
    def both_agree_about_what_is_under_way(self):
        assert self.coordinator.pending_ids == set(self.open())
        assert self.coordinator.newest_id == max(self.started, default=0)

    def teardown(self):
        """Check that a checkpoint completes as soon as no more failures happen."""
        if not hasattr(self, "coordinator"):
            return
        if self.running:
            self.fail_job()
        if self.writing is not None:
            self.end_of_writing(works=True)
        self.run_job()
        self.now_ms += 10_000
        actions = self.handle(EpochStarting(self.now_ms))
        (start,) = [a for a in actions if isinstance(a, StartCheckpoint)]
        for subtask in start.participants:
            self.handle(
                SnapshotDone(start.checkpoint_id, answer(start.checkpoint_id, subtask, finished=False), self.now_ms)
            )
        assert self.writing == start.checkpoint_id
        self.answered[start.checkpoint_id] = {}
        self.end_of_writing(works=True)
        assert self.over[start.checkpoint_id] == "completed"


TestCoordinator = CoordinatorMachine.TestCase
TestCoordinator.settings = settings(max_examples=examples(150), stateful_step_count=40, deadline=None)
