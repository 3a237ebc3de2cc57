"""Drives a sink through its contract in the runtime's order of calls, with crashes anywhere."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ekorn.functions.sink_contract import Sink, WriterContext


@dataclass
class Checkpoint:
    """One checkpoint: (committables, writer states) of each subtask, and the records that it covers."""

    id: int
    subtasks: list[bytes]
    covered: list[Any]


class Subtask:
    """One subtask of a sink: commits the restored committables, then writes."""

    def __init__(self, sink: Sink, index: int, count: int, restored: tuple[list[Any], list[Any]]) -> None:
        committables, states = restored
        self.committer = sink.create_committer()
        if committables:
            assert self.committer is not None
            self.committer.commit([committable for _, committable in committables])
        context = WriterContext(subtask_index=index, subtask_count=count, attempt=0, job_id="j", operator_id="o")
        self.writer: Any = sink.create_writer(context, states)
        self.waiting: list[tuple[int, Any]] = []
        self._finished = False

    def finish(self) -> None:
        self.writer.finish()
        self._finished = True

    def close(self) -> None:
        self.writer.close()
        if self.committer is not None:
            self.committer.close()

    def snapshot(self, checkpoint_id: int) -> bytes:
        if not self._finished:  # the epoch in which a subtask finishes has no other end
            self.writer.end_epoch()
        self.waiting += [(checkpoint_id, c) for c in self.writer.prepare_commit()]
        return pickle.dumps((list(self.waiting), list(self.writer.snapshot_state())))

    def completed(self, checkpoint_id: int) -> None:
        due = [c for i, c in self.waiting if i <= checkpoint_id]
        if due:
            assert self.committer is not None
            self.committer.commit(due)
        self.waiting = [(i, c) for i, c in self.waiting if i > checkpoint_id]


@dataclass
class SinkJob:
    """The subtasks of a sink, its checkpoints, and a model of the expected output."""

    sink: Sink
    parallelism: int
    written: list[Any] = field(default_factory=list)  # the surviving history
    latest: Checkpoint | None = None
    begun: list[Checkpoint] = field(default_factory=list)
    last_id: int = 0

    def __post_init__(self) -> None:
        self.start()

    def start(self, *, dies_after: int | None = None) -> None:
        """Start the subtasks from the latest checkpoint; only some of them if the attempt fails at once."""
        saved = [pickle.loads(part) for part in self.latest.subtasks] if self.latest else []
        shares = [([], []) for _ in range(self.parallelism)]
        for kind in (0, 1):
            elements = [(n, e) for n, part in enumerate(saved) for e in part[kind]]
            same = len(saved) == self.parallelism
            for number, (owner, element) in enumerate(elements):
                shares[owner if same else number % self.parallelism][kind].append(element)
        starting = list(enumerate(shares))[:dies_after]
        self.subtasks = [Subtask(self.sink, i, self.parallelism, share) for i, share in starting]

    def write(self, subtask: int, value: Any) -> None:
        self.subtasks[subtask % self.parallelism].writer.write(value, None)
        self.written.append(value)

    def begin_checkpoint(self) -> None:
        self.last_id += 1
        parts = [subtask.snapshot(self.last_id) for subtask in self.subtasks]
        self.begun.append(Checkpoint(self.last_id, parts, list(self.written)))

    def complete_checkpoint(self, *, notified: int | None = None) -> None:
        """Complete the oldest checkpoint in progress, and notify the `notified` subtasks."""
        if self.begun:
            self.latest = self.begun.pop(0)
            for subtask in self.subtasks[:notified]:
                subtask.completed(self.latest.id)

    def abort_checkpoint(self) -> None:
        if self.begun:
            self.begun.pop(0)

    def checkpoint(self) -> None:
        self.begin_checkpoint()
        while self.begun:
            self.complete_checkpoint()

    def crash(self, parallelism: int, *, orderly: bool = False, dies_after: int | None = None) -> None:
        """Lose the subtasks and start from the latest checkpoint, perhaps at the second attempt."""
        if orderly:
            for subtask in self.subtasks:
                subtask.close()
        self.parallelism = parallelism
        self.begun = []
        self.written = list(self.latest.covered) if self.latest else []
        if dies_after is not None:
            self.start(dies_after=dies_after)
        self.start()

    def finish(self) -> None:
        for subtask in self.subtasks:
            subtask.finish()
        self.checkpoint()
        for subtask in self.subtasks:
            subtask.close()


def visible_files(base: Path) -> list[Path]:
    return sorted(p for p in base.rglob("*") if p.is_file() and not p.name.startswith("."))


def hidden_files(base: Path) -> list[Path]:
    return sorted(p for p in base.rglob(".*") if p.is_file())


def visible_lines(base: Path) -> list[str]:
    return [line for path in visible_files(base) for line in path.read_text().splitlines()]
