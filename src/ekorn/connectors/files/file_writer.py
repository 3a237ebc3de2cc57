"""The writers of a file sink: of row formats, and of bulk formats."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ekorn.clock import Clock
from ekorn.connectors.files.bucket_assigners import BucketAssigner, BucketContext
from ekorn.connectors.files.file_compaction import Compaction, FileCompactor, FileCompactStrategy
from ekorn.connectors.files.part_store import BulkPart, PartStore, WrittenPart
from ekorn.connectors.files.rolling_policies import RollingPolicy
from ekorn.connectors.formats.schemas import BulkWriterFactory
from ekorn.errors import InvalidProgramError
from ekorn.functions.sink_contract import Committer, SinkWriter, WrittenBatch

__all__ = ["BulkFileWriter", "Compact", "FileCommitter", "FileWriter", "WriterSettings"]

Compact = tuple[FileCompactStrategy, FileCompactor]


@dataclass(frozen=True)
class WriterSettings:
    """What the builder of a sink sets for its writers."""

    bucket_assigner: BucketAssigner
    rolling_policy: RollingPolicy
    part_prefix: str
    part_suffix: str
    bucket_check_interval_ms: int
    clock: Clock


class FileCommitter(Committer[Any]):
    """Makes part files visible, and removes the parts that merged ones replace."""

    def __init__(self, parts: PartStore) -> None:
        self._parts = parts

    def commit(self, committables: Sequence[Any]) -> None:
        self._parts.publish(committables)
        for file in committables:
            for replaced in file.get("replaces", ()):
                self._parts.remove_hidden(replaced)


class FileWriter(SinkWriter[Any, Any]):
    """Writes the part files of one subtask, at most one at a time in each bucket."""

    def __init__(
        self,
        parts: PartStore,
        settings: WriterSettings,
        subtask_index: int,
        *,
        encode: Callable[[Any], bytes],
        compact: Compact | None,
    ) -> None:
        self._parts = parts
        # The uid is new for every writer, so no attempt has used a name before.
        self._name_start = f"{settings.part_prefix}-{subtask_index}-{uuid.uuid4()}-"
        self._name_end = settings.part_suffix
        self._numbers = itertools.count()  # the numbers of parts; merging takes numbers on several threads
        self._encode = encode
        self._bucket_of = settings.bucket_assigner.get_bucket_id
        self._policy = settings.rolling_policy
        self._now_ms = settings.clock.now_ms
        self._check_interval_ms = settings.bucket_check_interval_ms
        self._next_check_ms = self._now_ms() + self._check_interval_ms
        self._context = BucketContext()
        self._open: dict[str, Any] = {}
        self._ended: list[Any] = []
        self._restored: list[Any] = []
        self._finished = False
        self._compactor = compact[1] if compact is not None else None
        self._compaction = None if compact is None else Compaction(*compact, parts, self._write_merged)

    def restore(self, restored: Sequence[Any], *, exactly_once: bool) -> None:
        """Take over the parts that were open, or waited to be merged, when the restored checkpoint was taken."""
        for file in restored:
            # In the mode AT_LEAST_ONCE a part may be visible although the checkpoint that covers it never completed.
            if exactly_once or not self._parts.is_visible(file):
                self._parts.check_restored(file)
                self._restored.append(file)

    def write(self, value: Any, timestamp: int | None) -> None:  # hot
        context, now_ms = self._context, self._now_ms()
        context._processing_time_ms, context._timestamp = now_ms, timestamp
        if now_ms >= self._next_check_ms:
            self._end_due(now_ms)
        data = self._encode(value)
        bucket_id = self._bucket_of(value, context)
        part = self._open.get(bucket_id)
        if part is None:
            part = self._begin(bucket_id, now_ms)
        elif self._policy.should_roll_on_event(part, value):
            self._end(part)
            part = self._begin(bucket_id, now_ms)
        part.write(data, now_ms)

    def prepare_commit(self) -> list[Any]:
        self._end_due(self._now_ms())
        for part in list(self._open.values()):
            if self._parts.ends_at_checkpoints or self._policy.should_roll_on_checkpoint(part):
                self._end(part)
        for part in self._ended:
            part.make_durable()
        pending = self._restored + [part.pending() for part in self._ended]
        self._restored, self._ended = [], []
        return pending if self._compaction is None else self._compaction.take_due(pending, all_now=self._finished)

    def snapshot_state(self) -> list[Any]:
        """Return the open parts, each as the pending file that a restore makes of it, and parts that wait."""
        for part in self._open.values():
            part.make_durable()
        waiting = [] if self._compaction is None else self._compaction.held
        return [*(part.pending() for part in self._open.values()), *waiting]

    def finish(self) -> None:
        self._finished = True
        for part in list(self._open.values()):
            self._end(part)

    def close(self) -> None:
        # Parts that a checkpoint may refer to are kept for its restore. After a crash, the others stay as hidden files.
        for part in (*self._open.values(), *self._ended):
            if not part.saved:
                part.delete()
        self._open, self._ended = {}, []

    def _begin(self, bucket_id: str, now_ms: int) -> Any:
        part = self._new_part(bucket_id, "", now_ms)
        self._open[bucket_id] = part
        return part

    def _new_part(self, bucket_id: str, prefix: str, now_ms: int) -> WrittenPart:
        name = f"{prefix}{self._name_start}{next(self._numbers)}{self._name_end}"
        return self._parts.begin(_checked_bucket(bucket_id), name, f".{name}.inprogress.{uuid.uuid4()}", now_ms)

    def _end(self, part: Any) -> None:
        part.flush()
        del self._open[part.get_bucket_id()]
        self._ended.append(part)

    def _end_due(self, now_ms: int) -> None:
        """End the parts that the rolling policy ends by their age."""
        for part in list(self._open.values()):
            if self._policy.should_roll_on_processing_time(part, now_ms):
                self._end(part)
        self._next_check_ms = now_ms + self._check_interval_ms

    def _write_merged(self, bucket_id: str, contents: Iterator[Any]) -> Any:
        """Write the contents of several parts into one, durably; return it as checkpoints keep it."""
        now_ms = self._now_ms()
        part = self._new_part(bucket_id, "compacted-", now_ms)
        assert self._compactor is not None
        for each in contents:
            part.write(self._encode(each) if self._compactor.record_wise else each, now_ms)
        part.make_durable()
        return part.pending()


class BulkFileWriter(FileWriter):
    """Writes the part files of a bulk format. The rolling policy ends them at every checkpoint."""

    def __init__(
        self,
        parts: PartStore,
        settings: WriterSettings,
        subtask_index: int,
        *,
        factory: BulkWriterFactory,
        compact: Compact | None,
    ) -> None:
        super().__init__(parts, settings, subtask_index, encode=_no_encoder, compact=compact)
        self._factory = factory

    def write(self, value: Any, timestamp: int | None) -> None:  # hot
        now_ms = self._now_ms()
        self._part_for(value, timestamp, now_ms).add(value, now_ms)

    def write_batch(self, batch: WrittenBatch) -> None:
        """Write a batch of columns to one part. The rolling policy is asked once, about the first row."""
        if not len(batch):
            return
        now_ms = self._now_ms()
        time = None if batch.times is None else int(batch.times[0])
        self._part_for(batch.row(0), time, now_ms).add_columns(batch.data, now_ms)

    def _part_for(self, value: Any, timestamp: int | None, now_ms: int) -> BulkPart:  # hot
        context = self._context
        context._processing_time_ms, context._timestamp = now_ms, timestamp
        if now_ms >= self._next_check_ms:
            self._end_due(now_ms)
        bucket_id = self._bucket_of(value, context)
        part: BulkPart | None = self._open.get(bucket_id)
        if part is None:
            return self._begin(bucket_id, now_ms)
        if self._policy.should_roll_on_event(part, value):
            self._end(part)
            return self._begin(bucket_id, now_ms)
        return part

    def _begin(self, bucket_id: str, now_ms: int) -> BulkPart:
        part = BulkPart(self._new_part(bucket_id, "", now_ms), self._factory, now_ms)
        self._open[bucket_id] = part
        return part

    def _end(self, part: BulkPart) -> None:
        part.finish()
        super()._end(part)

    def _write_merged(self, bucket_id: str, contents: Iterator[Any]) -> Any:
        assert self._compactor is not None
        if not self._compactor.record_wise:
            return super()._write_merged(bucket_id, contents)
        now_ms = self._now_ms()
        part = BulkPart(self._new_part(bucket_id, "compacted-", now_ms), self._factory, now_ms)
        for each in contents:
            part.add(each, now_ms)
        part.finish()
        part.make_durable()
        return part.pending()


def _no_encoder(value: Any) -> bytes:
    raise AssertionError("a bulk format has writers instead of an encoder")


def _checked_bucket(bucket_id: Any) -> str:
    """Return the directory of a bucket; check that it is below the base path."""
    if not isinstance(bucket_id, str) or "\0" in bucket_id:
        raise InvalidProgramError(
            f"a bucket assigner must return the directory of the bucket as text, but returned {bucket_id!r}"
        )
    if bucket_id.startswith("/") or ".." in bucket_id.split("/"):
        raise InvalidProgramError(
            f"a bucket must be below the sink's base path, but a bucket assigner returned {bucket_id!r}"
        )
    return bucket_id
