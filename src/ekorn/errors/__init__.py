"""Every exception ekorn raises: one tree, in modules by subject. Programs import all of them from here.

An error keeps its fields in ``args`` (`base.with_fields`) and composes its message in ``__str__``. Errors travel from
slots to the driver by pickle, which rebuilds an exception by calling its class with ``args``. An error that composed
its message in ``__init__`` would compose it twice, or could not be rebuilt.

    EkornError
        program.py      InvalidProgramError (DuplicateUidError), ConfigurationError (UnsafeFolderError),
                        UnsupportedOperationError, AccumulatorError
        records.py      InvalidKeyError, InvalidTimestampError, RecordTypeError, ColumnValueError,
                        AggregateOverflowError, RecordTooLargeError, RecordFormatError, MalformedRecordError,
                        SchemaRegistryError, RecordErrorLimitExceeded, UserFunctionError
        job.py          JobExecutionError, JobCancelledError, RescaleError, DeploymentError (WorkerPythonError),
                        SlotLostError (SlotMemoryError), EpochStalledError, SparkSessionLostError, SpoolError,
                        DamagedBlob, CollectSpillError
        state.py        StateError (StateNotKeyed, NoCurrentKey, StateMigrationError)
        data_frames.py  RowFilesDamaged, RowFilesGone, SparkSourceFailed, StreamingQueryFailed
        databases.py    DatabaseError (LedgerRowExpired)
        services.py     HttpLookupError
        checkpoints.py  CheckpointError (CheckpointFailed, CorruptFileError (UntrustedFileError), JobHasFinished,
                        JobWasCancelled, DirectoryInUse, Fenced, PendingFileLost), RestoreError
                        (NoReadableCheckpoint, SinkFilesMissing)
        queryable.py    QueryableNameTwice (an InvalidProgramError), QueryError (UnknownJob, UnknownQueryableState,
                        UnknownKey, StateNotServed, QueryRefused)
        kafka.py        KafkaError (KafkaOffsetsLost, KafkaPartitionLost, KafkaTransactionLost)
        rabbitmq.py     RabbitMQError
"""

from ekorn.errors.base import EkornError, preview
from ekorn.errors.checkpoints import (
    CheckpointError,
    CheckpointFailed,
    CorruptFileError,
    DirectoryInUse,
    Fenced,
    JobHasFinished,
    JobWasCancelled,
    NoReadableCheckpoint,
    PendingFileLost,
    RestoreError,
    SinkFilesMissing,
    UntrustedFileError,
)
from ekorn.errors.data_frames import RowFilesDamaged, RowFilesGone, SparkSourceFailed, StreamingQueryFailed
from ekorn.errors.databases import DatabaseError, LedgerRowExpired
from ekorn.errors.job import (
    CollectSpillError,
    DamagedBlob,
    DeploymentError,
    EpochStalledError,
    JobCancelledError,
    JobExecutionError,
    RescaleError,
    SlotLostError,
    SlotMemoryError,
    SparkSessionLostError,
    SpoolError,
    WorkerPythonError,
    may_be_retried,
)
from ekorn.errors.kafka import KafkaError, KafkaOffsetsLost, KafkaPartitionLost, KafkaTransactionLost
from ekorn.errors.program import (
    AccumulatorError,
    ConfigurationError,
    DuplicateUidError,
    InvalidProgramError,
    ProgramWarning,
    UnsafeFolderError,
    UnsupportedOperationError,
    warn,
)
from ekorn.errors.queryable import (
    QueryableNameTwice,
    QueryError,
    QueryRefused,
    StateNotServed,
    UnknownJob,
    UnknownKey,
    UnknownKeyOrNamespaceException,
    UnknownKvStateLocation,
    UnknownQueryableState,
)
from ekorn.errors.rabbitmq import RabbitMQError
from ekorn.errors.records import (
    AggregateOverflowError,
    ColumnValueError,
    InvalidKeyError,
    InvalidTimestampError,
    MalformedRecordError,
    RecordErrorLimitExceeded,
    RecordFormatError,
    RecordTooLargeError,
    RecordTypeError,
    SchemaRegistryError,
    UserFunctionError,
)
from ekorn.errors.services import HttpLookupError
from ekorn.errors.state import (
    NoCurrentKey,
    StateError,
    StateMigrationError,
    StateMigrationException,
    StateNotKeyed,
)

__all__ = [
    "AccumulatorError",
    "AggregateOverflowError",
    "CheckpointError",
    "CheckpointFailed",
    "CollectSpillError",
    "ColumnValueError",
    "ConfigurationError",
    "CorruptFileError",
    "DamagedBlob",
    "DatabaseError",
    "DeploymentError",
    "DirectoryInUse",
    "DuplicateUidError",
    "EkornError",
    "EpochStalledError",
    "Fenced",
    "HttpLookupError",
    "InvalidKeyError",
    "InvalidProgramError",
    "InvalidTimestampError",
    "JobCancelledError",
    "JobExecutionError",
    "JobHasFinished",
    "JobWasCancelled",
    "KafkaError",
    "KafkaOffsetsLost",
    "KafkaPartitionLost",
    "KafkaTransactionLost",
    "LedgerRowExpired",
    "MalformedInputError",
    "MalformedRecordError",
    "NoCurrentKey",
    "NoReadableCheckpoint",
    "OutputExistsError",
    "OutputsPartlyVisibleError",
    "PendingFileLost",
    "ProgramWarning",
    "QueryError",
    "QueryRefused",
    "QueryableNameTwice",
    "RabbitMQError",
    "RecomputedInputError",
    "RecordErrorLimitExceeded",
    "RecordFormatError",
    "RecordTooLargeError",
    "RecordTypeError",
    "RescaleError",
    "RestoreError",
    "RowFilesDamaged",
    "RowFilesGone",
    "SchemaRegistryError",
    "SinkFilesMissing",
    "SlotLostError",
    "SlotMemoryError",
    "SparkSessionLostError",
    "SparkSourceFailed",
    "SpoolError",
    "StateError",
    "StateMigrationError",
    "StateMigrationException",
    "StateNotKeyed",
    "StateNotServed",
    "StreamingQueryFailed",
    "UnknownJob",
    "UnknownKey",
    "UnknownKeyOrNamespaceException",
    "UnknownKvStateLocation",
    "UnknownQueryableState",
    "UnsafeFolderError",
    "UnsupportedOperationError",
    "UntrustedFileError",
    "UserFunctionError",
    "WorkerPythonError",
    "may_be_retried",
    "preview",
    "warn",
]
from ekorn.errors.batch import (
    MalformedInputError,
    OutputExistsError,
    OutputsPartlyVisibleError,
    RecomputedInputError,
)
