"""`FileSink`: writes every record to a file exactly once.

Records are appended to a hidden part file. The rolling policy ends the part, the next checkpoint lists it as pending,
and a rename makes it visible when that checkpoint is complete. A part that is not ended at a checkpoint continues, and
the checkpoint keeps the number of its valid bytes. After a restore such a part is not continued: its valid bytes become
a visible part, and new records go to new parts. A file that a checkpoint refers to therefore stays unchanged until a
later checkpoint is complete.

Parts of bulk formats, and parts by URL, end at every checkpoint. `file_writer.py` writes, `part_store.py` says where.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Self

from ekorn.clock import Clock, SystemClock
from ekorn.connectors.delivery import StreamTransformer, SupportsPreprocessing
from ekorn.connectors.files.bucket_assigners import BucketAssigner
from ekorn.connectors.files.file_addresses import input_address
from ekorn.connectors.files.file_compaction import ConcatFileCompactor, FileCompactor, FileCompactStrategy
from ekorn.connectors.files.file_writer import BulkFileWriter, Compact, FileCommitter, FileWriter, WriterSettings
from ekorn.connectors.files.multipart_parts import MultipartParts, can_upload_in_parts
from ekorn.connectors.files.part_store import LocalParts, PartStore
from ekorn.connectors.files.remote_parts import RemoteParts
from ekorn.connectors.files.rolling_policies import CheckpointRollingPolicy, RollingPolicy
from ekorn.connectors.formats.schemas import BulkWriterFactory, Encoder
from ekorn.errors import ConfigurationError
from ekorn.functions.sink_contract import Committer, Sink, SinkWriter, WriterContext
from ekorn.storage.locations import scheme_of, shown
from ekorn.types.data_types import RowType
from ekorn.types.type_information import TypeInformation

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
    The base path is a directory, the same one on every machine, or a URL such as `s3://bucket/out`.
    """

    def __init__(
        self,
        base_path: str,
        encoder: Encoder | BulkWriterFactory,
        settings: WriterSettings,
        compact: Compact | None,
    ) -> None:
        """Create the sink from the settings of a builder."""
        self.base_path = base_path
        self.encoder = encoder
        self.settings = settings
        self.compact = compact

    class BaseBuilder:
        """The settings of every format."""

        def __init__(self, base_path: str | os.PathLike[str], encoder: Encoder | BulkWriterFactory) -> None:
            """Begin with Flink's defaults: one bucket per hour, parts of up to 128 MB or one minute."""
            self._base_path = input_address(base_path, "FileSink")
            self._encoder = encoder
            self._bucket_assigner = BucketAssigner.date_time_bucket_assigner()
            self._rolling_policy: RollingPolicy = RollingPolicy.default_rolling_policy()
            self._output_file_config = OutputFileConfig.builder().build()
            self._bucket_check_interval_ms = 60_000
            self._clock: Clock | None = None
            self._compact: Compact | None = None

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

        def enable_compact(self, strategy: FileCompactStrategy, compactor: FileCompactor) -> Self:
            """Merge small parts of a bucket before they become visible."""
            if isinstance(compactor, ConcatFileCompactor) and not getattr(self._encoder, "bytes_can_be_joined", True):
                raise ConfigurationError(
                    f"enable_compact() cannot join the bytes of files of {self._encoder!r}: each file has its own "
                    "header or footer, so the joined file would lose records; use RecordWiseFileCompactor(format)"
                )
            self._compact = (
                _checked("enable_compact", strategy, FileCompactStrategy),
                _checked("enable_compact", compactor, FileCompactor),
            )
            return self

        def disable_compact(self) -> Self:
            """Make parts visible as they are. Parts that waited to be merged become visible too."""
            self._compact = None
            return self

        def build(self) -> FileSink:
            """Return the sink."""
            config = self._output_file_config
            settings = WriterSettings(
                bucket_assigner=self._bucket_assigner,
                rolling_policy=self._rolling_policy,
                part_prefix=config.get_part_prefix(),
                part_suffix=config.get_part_suffix(),
                bucket_check_interval_ms=self._bucket_check_interval_ms,
                clock=self._clock or SystemClock(),
            )
            return FileSink(self._base_path, self._encoder, settings, self._compact)

    class RowFormatBuilder(BaseBuilder):
        """Builds a sink that writes record after record."""

        def __init__(self, base_path: str | os.PathLike[str], encoder: Encoder) -> None:
            """Begin with Flink's defaults."""
            super().__init__(base_path, encoder)
            if not isinstance(encoder, Encoder):
                raise TypeError(f"for_row_format() takes an Encoder for the records, got {encoder!r}")

    class BulkFormatBuilder(BaseBuilder):
        """Builds a sink that writes files of a bulk format, which end at every checkpoint."""

        def __init__(self, base_path: str | os.PathLike[str], writer_factory: BulkWriterFactory) -> None:
            """Begin with Flink's defaults."""
            super().__init__(base_path, writer_factory)
            if not callable(getattr(writer_factory, "create", None)):
                raise TypeError(
                    "for_bulk_format() takes a BulkWriterFactory such as ParquetBulkWriters.for_row_type(...), "
                    f"got {writer_factory!r}"
                )
            self._rolling_policy = RollingPolicy.on_checkpoint_rolling_policy()

        def with_rolling_policy(self, rolling_policy: RollingPolicy) -> Self:
            """Set the policy that ends part files; it must be a `CheckpointRollingPolicy`."""
            if not isinstance(rolling_policy, CheckpointRollingPolicy):
                raise ConfigurationError(
                    "a file of a bulk format ends at every checkpoint: with_rolling_policy() takes "
                    f"OnCheckpointRollingPolicy or another CheckpointRollingPolicy, got {rolling_policy!r}"
                )
            return super().with_rolling_policy(rolling_policy)

    @staticmethod
    def for_row_format(base_path: str | os.PathLike[str], encoder: Encoder) -> FileSink.RowFormatBuilder:
        """Begin to build a sink that writes each record with an encoder."""
        return FileSink.RowFormatBuilder(base_path, encoder)

    @staticmethod
    def for_bulk_format(
        base_path: str | os.PathLike[str], writer_factory: BulkWriterFactory
    ) -> FileSink.BulkFormatBuilder:
        """Begin to build a sink that writes files with the writers of a bulk format."""
        return FileSink.BulkFormatBuilder(base_path, writer_factory)

    def get_transformer(self) -> StreamTransformer | None:
        """Return None: the stream is not transformed."""
        return None

    def with_input_type(self, type_info: TypeInformation | None) -> FileSink:
        """Return this sink for records of a declared type, which determines their text."""
        if type(self.encoder) is not Encoder:
            return self  # an encoder of the program, or a bulk format, writes records in its own way
        encoder = self.encoder.with_type(type_info)
        return FileSink(self.base_path, encoder, self.settings, self.compact)

    def with_columns(self, row_type: RowType) -> FileSink | None:
        """Return this sink for batches of columns, if its format writes them and the clock alone chooses buckets."""
        for_columns = getattr(self.encoder, "for_columns", None)
        if for_columns is None or not self.settings.bucket_assigner.by_clock:
            return None
        factory = for_columns(row_type)
        return None if factory is None else FileSink(self.base_path, factory, self.settings, self.compact)

    def create_writer(self, context: WriterContext, restored: Sequence[Any]) -> SinkWriter[Any, Any]:
        """Create the writer of one subtask."""
        writer = self.writer(context.subtask_index)
        writer.restore(restored, exactly_once=context.exactly_once)
        return writer

    def writer(self, subtask_index: int) -> FileWriter:
        """Create the writer of one subtask, which begins with no parts."""
        parts, settings, compact = self.parts(), self.settings, self.compact
        if isinstance(self.encoder, Encoder):
            return FileWriter(parts, settings, subtask_index, encode=self.encoder.encode, compact=compact)
        return BulkFileWriter(parts, settings, subtask_index, factory=self.encoder, compact=compact)

    def create_committer(self) -> Committer[Any]:
        """Create the committer, which makes files visible."""
        return FileCommitter(self.parts())

    def parts(self) -> PartStore:
        """Open the base path."""
        if not scheme_of(self.base_path):
            return LocalParts(self.base_path)
        # Parts that are merged are read before they are visible, and an upload cannot be read.
        if self.compact is None and can_upload_in_parts(self.base_path):
            return MultipartParts(self.base_path)
        return RemoteParts(self.base_path)

    def __repr__(self) -> str:
        return f"FileSink({shown(self.base_path)!r}, {self.encoder!r})"


def _checked(call: str, value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{call}() takes a {kind.__name__}, got {value!r}")
    return value
