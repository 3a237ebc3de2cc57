"""`FileSink`: writes every record to a file exactly once.

Records are appended to a hidden part file. The rolling policy ends the part, the next checkpoint lists it as pending,
and a rename makes it visible when that checkpoint is complete. A part that is not ended at a checkpoint continues, and
the checkpoint keeps the number of its valid bytes. After a restore such a part is not continued: its valid bytes become
a visible part, and new records go to new parts. A file that a checkpoint refers to therefore stays unchanged until a
later checkpoint is complete.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from typing import Any, Self

from tamias.clock import Clock, SystemClock
from tamias.connectors.bucket_assigners import BucketAssigner, BucketContext
from tamias.connectors.delivery import StreamTransformer, SupportsPreprocessing
from tamias.connectors.file_addresses import local_path
from tamias.connectors.formats.schemas import Encoder
from tamias.connectors.part_files import PartFile, PendingFile, publish
from tamias.connectors.rolling_policies import RollingPolicy
from tamias.errors import InvalidProgramError, SinkFilesMissing
from tamias.functions.sink_contract import Committer, Sink, SinkWriter, WriterContext
from tamias.types.type_information import TypeInformation

__all__ = ["FileSink", "OutputFileConfig"]


class OutputFileConfig:
    """The names of part files: `<prefix>-<subtask>-<uid>-<counter><suffix>`."""

    def __init__(self, part_prefix: str = "part", part_suffix: str = "") -> None:
        """Set the prefix and the suffix of the names."""
        for name, value in (("prefix", part_prefix), ("suffix", part_suffix)):
            if not isinstance(value, str) or "/" in value or "\0" in value:
                raise ValueError(f"a part file's {name} is text without '/', got {value!r}")
        self._part_prefix = part_prefix
        self._part_suffix = part_suffix

    @staticmethod
    def builder() -> OutputFileConfig.OutputFileConfigBuilder:
        """Begin with the prefix "part" and no suffix."""
        return OutputFileConfig.OutputFileConfigBuilder()

    def get_part_prefix(self) -> str:
        """Return the prefix of the names."""
        return self._part_prefix

    def get_part_suffix(self) -> str:
        """Return the suffix of the names."""
        return self._part_suffix

    class OutputFileConfigBuilder:
        """Builds an `OutputFileConfig`."""

        def __init__(self) -> None:
            """Begin with Flink's names."""
            self._part_prefix = "part"
            self._part_suffix = ""

        def with_part_prefix(self, prefix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """Set the prefix of the names."""
            self._part_prefix = prefix
            return self

        def with_part_suffix(self, suffix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """Set the suffix of the names, such as ".txt"."""
            self._part_suffix = suffix
            return self

        def build(self) -> OutputFileConfig:
            """Return the configuration."""
            return OutputFileConfig(self._part_prefix, self._part_suffix)


class FileSink(Sink[Any], SupportsPreprocessing):
    """Writes records to files below a base path, in one directory per bucket.

        FileSink.for_row_format("/data/out", Encoder.simple_string_encoder()).build()

    Records become visible when a checkpoint that covers them is complete; without checkpoints, at the end of the input.
    The base path must be the same directory on every machine.
    """

    def __init__(
        self,
        base_path: str,
        encoder: Encoder,
        *,
        bucket_assigner: BucketAssigner,
        rolling_policy: RollingPolicy,
        output_file_config: OutputFileConfig,
        bucket_check_interval_ms: int,
        clock: Clock | None = None,
    ) -> None:
        """Create the sink from the settings of a builder."""
        self.base_path = base_path
        self.encoder = encoder
        self.bucket_assigner = bucket_assigner
        self.rolling_policy = rolling_policy
        self.output_file_config = output_file_config
        self.bucket_check_interval_ms = bucket_check_interval_ms
        self.clock = clock or SystemClock()

    class BaseBuilder:
        """The settings of every format."""

        def __init__(self, base_path: str | os.PathLike[str], encoder: Encoder) -> None:
            """Begin with Flink's defaults: one bucket per hour, parts of up to 128 MB or one minute."""
            self._base_path = local_path(base_path, "FileSink")
            if not isinstance(encoder, Encoder):
                raise TypeError(f"for_row_format() takes an Encoder for the records, got {encoder!r}")
            self._encoder = encoder
            self._bucket_assigner = BucketAssigner.date_time_bucket_assigner()
            self._rolling_policy: RollingPolicy = RollingPolicy.default_rolling_policy()
            self._output_file_config = OutputFileConfig.builder().build()
            self._bucket_check_interval_ms = 60_000
            self._clock: Clock | None = None

        def with_bucket_check_interval(self, interval: int) -> Self:
            """Set the interval, in milliseconds, at which the rolling policy checks the age of part files.

            The check happens when a record is written, and at checkpoints.
            """
            if isinstance(interval, bool) or not isinstance(interval, int) or interval <= 0:
                raise ValueError(f"with_bucket_check_interval() takes milliseconds above 0, got {interval!r}")
            self._bucket_check_interval_ms = interval
            return self

        def with_bucket_assigner(self, bucket_assigner: BucketAssigner) -> Self:
            """Set the assigner that chooses the directory of a record."""
            self._bucket_assigner = _checked("with_bucket_assigner", bucket_assigner, BucketAssigner)
            return self

        def with_output_file_config(self, output_file_config: OutputFileConfig) -> Self:
            """Set the names of the files."""
            self._output_file_config = _checked("with_output_file_config", output_file_config, OutputFileConfig)
            return self

        def with_rolling_policy(self, rolling_policy: RollingPolicy) -> Self:
            """Set the policy that ends part files."""
            self._rolling_policy = _checked("with_rolling_policy", rolling_policy, RollingPolicy)
            return self

        def with_clock(self, clock: Clock) -> Self:
            """Set the clock of the bucket assigner and the rolling policy; for tests."""
            self._clock = clock
            return self

        def build(self) -> FileSink:
            """Return the sink."""
            return FileSink(
                self._base_path,
                self._encoder,
                bucket_assigner=self._bucket_assigner,
                rolling_policy=self._rolling_policy,
                output_file_config=self._output_file_config,
                bucket_check_interval_ms=self._bucket_check_interval_ms,
                clock=self._clock,
            )

    class RowFormatBuilder(BaseBuilder):
        """Builds a sink that writes record after record."""

    @staticmethod
    def for_row_format(base_path: str | os.PathLike[str], encoder: Encoder) -> FileSink.RowFormatBuilder:
        """Begin to build a sink that writes each record with an encoder."""
        return FileSink.RowFormatBuilder(base_path, encoder)

    def get_transformer(self) -> StreamTransformer | None:
        """Return None: the stream is not transformed."""
        return None

    def with_input_type(self, type_info: TypeInformation | None) -> FileSink:
        """Return this sink for records of a declared type, which determines their text."""
        if type(self.encoder) is not Encoder:
            return self  # an encoder of the program writes records in its own way
        return FileSink(
            self.base_path,
            self.encoder.with_type(type_info),
            bucket_assigner=self.bucket_assigner,
            rolling_policy=self.rolling_policy,
            output_file_config=self.output_file_config,
            bucket_check_interval_ms=self.bucket_check_interval_ms,
            clock=self.clock,
        )

    def create_writer(self, context: WriterContext, restored: Sequence[Any]) -> SinkWriter[Any, PendingFile]:
        """Create the writer of one subtask."""
        return FileWriter(self, context.subtask_index, restored, exactly_once=context.exactly_once)

    def create_committer(self) -> Committer[PendingFile]:
        """Create the committer, which makes files visible."""
        return FileCommitter()

    def __repr__(self) -> str:
        return f"FileSink({self.base_path!r}, {self.encoder!r})"


class FileCommitter(Committer[PendingFile]):
    """Makes part files visible."""

    def commit(self, committables: Sequence[PendingFile]) -> None:
        publish(committables)


class FileWriter(SinkWriter[Any, PendingFile]):
    """Writes the part files of one subtask, at most one at a time in each bucket."""

    def __init__(
        self, sink: FileSink, subtask_index: int, restored: Sequence[PendingFile], *, exactly_once: bool = True
    ) -> None:
        self._base_path = sink.base_path
        config = sink.output_file_config
        # The uid is new for every writer, so no attempt has used a name before.
        self._name_start = f"{config.get_part_prefix()}-{subtask_index}-{uuid.uuid4()}-"
        self._name_end = config.get_part_suffix()
        self._counter = 0
        self._encode = sink.encoder.encode
        self._bucket_of = sink.bucket_assigner.get_bucket_id
        self._policy = sink.rolling_policy
        self._now_ms = sink.clock.now_ms
        self._check_interval_ms = sink.bucket_check_interval_ms
        self._next_check_ms = self._now_ms() + self._check_interval_ms
        self._context = BucketContext()
        self._open: dict[str, PartFile] = {}
        self._ended: list[PartFile] = []
        # In the mode AT_LEAST_ONCE a part may be visible although the checkpoint that covers it never completed.
        left = [p for p in restored if exactly_once or not os.path.exists(p["visible"])]
        self._restored = [_checked_restored(part) for part in left]

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

    def prepare_commit(self) -> list[PendingFile]:
        self._end_due(self._now_ms())
        for part in list(self._open.values()):
            if self._policy.should_roll_on_checkpoint(part):
                self._end(part)
        for part in self._ended:
            part.make_durable()
        pending = self._restored + [part.pending() for part in self._ended]
        self._restored, self._ended = [], []
        return pending

    def snapshot_state(self) -> list[PendingFile]:
        """Return the open parts, each as the pending file that a restore makes of it."""
        for part in self._open.values():
            part.make_durable()
        return [part.pending() for part in self._open.values()]

    def finish(self) -> None:
        for part in list(self._open.values()):
            self._end(part)

    def close(self) -> None:
        # Parts that a checkpoint may refer to are kept for its restore. After a crash, the others stay as hidden files.
        for part in (*self._open.values(), *self._ended):
            if not part.saved:
                part.delete()
        self._open, self._ended = {}, []

    def _begin(self, bucket_id: str, now_ms: int) -> PartFile:
        directory = os.path.join(self._base_path, _checked_bucket(bucket_id))
        name = f"{self._name_start}{self._counter}{self._name_end}"
        self._counter += 1
        hidden = os.path.join(directory, f".{name}.inprogress.{uuid.uuid4()}")
        part = PartFile(bucket_id, hidden, os.path.join(directory, name), now_ms)
        self._open[bucket_id] = part
        return part

    def _end(self, part: PartFile) -> None:
        part.flush()
        del self._open[part.get_bucket_id()]
        self._ended.append(part)

    def _end_due(self, now_ms: int) -> None:
        """End the parts that the rolling policy ends by their age."""
        for part in list(self._open.values()):
            if self._policy.should_roll_on_processing_time(part, now_ms):
                self._end(part)
        self._next_check_ms = now_ms + self._check_interval_ms


def _checked_restored(part: PendingFile) -> PendingFile:
    """Return a part that was open when the restored checkpoint was taken; check that its valid bytes exist."""
    hidden, length = part["hidden"], part["bytes"]
    try:
        found = os.path.getsize(hidden)
    except FileNotFoundError:
        # Flink: refuses such a restore too.
        raise SinkFilesMissing(
            f"cannot restore the file sink: {hidden!r} is missing, which was being written when the checkpoint was "
            "taken; a checkpoint cannot be restored after a later one has made its files visible: restore the latest "
            "one, or restore this one without the state of the sink, under a new uid and another base path"
        ) from None
    if found < length:
        raise SinkFilesMissing(
            f"cannot restore the file sink: {hidden!r} has {found} bytes, but {length} were written when the "
            "checkpoint was taken; restore the file from a copy"
        )
    return part


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


def _checked(call: str, value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{call}() takes a {kind.__name__}, got {value!r}")
    return value
