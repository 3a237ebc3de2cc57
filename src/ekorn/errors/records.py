"""Errors that a single record causes, and the exceptions of user code."""

from __future__ import annotations

from ekorn.errors.base import EkornError, not_passed, where, with_fields


@with_fields
class InvalidKeyError(EkornError, TypeError):
    """A key selector returned a value that cannot be a key."""

    record_preview: str
    key_preview: str
    reason: str

    def __str__(self) -> str:
        record, key, reason = self.args
        if not record:  # a key that no record has, such as one on the command line
            return f"cannot use {key} as a key: {reason}"
        return f"cannot use {key} as the key of record {record}: {reason}"


@with_fields
class InvalidTimestampError(EkornError, TypeError):
    """A record was given a timestamp that is not an int.

    Args:
        origin: Where the timestamp comes from, such as ``the timestamp assigner read_time (program.py:12) returned``.
        timestamp_preview: The timestamp.
        kind: The class of it.
        record_preview: The record.
        advice: What to use instead.
    """

    origin: str
    timestamp_preview: str
    kind: str
    record_preview: str
    advice: str

    def __str__(self) -> str:
        origin, timestamp, kind, record, advice = self.args
        what = timestamp if timestamp == "None" else f"{timestamp} ({kind})"
        return f"{origin} {what} for record {record}; a timestamp is an int, in milliseconds since 1970: {advice}"


@with_fields
class RecordTypeError(EkornError, TypeError):
    """A function returned a value that does not fit the type declared for its output, or a collection holds one.

    Args:
        declared: The declared type.
        value_preview: The value, as :func:`preview` returns it.
        reason: What does not fit.
        element: Where the value is in a collection, such as ``element 3 of from_collection() at program.py:12``.
    """

    declared: str
    value_preview: str
    reason: str
    element: str | None = None

    emitted_by: int | None = not_passed(default=None)  # the operator of the chain that emitted the value, if known
    position: int | None = not_passed(default=None)  # the position of the record among those that were converted

    def __str__(self) -> str:
        declared, value, reason, element = self.args
        if element is not None:
            return (
                f"{element}: {value} does not fit the declared type {declared}: {reason}; correct the element, or "
                "declare another type_info"
            )
        return (
            f"the value {value} does not fit the declared type {declared}: {reason}; "
            "return a fitting value, or declare another output_type"
        )


@with_fields
class ColumnValueError(EkornError, ValueError):
    """A value in a batch of columns does not fit the declared type of its column.

    Args:
        origin: What gave the batch, such as ``a batch function returned``.
        column: The name of the column.
        declared: The declared type.
        value_preview: The value, as :func:`preview` returns it.
        reason: What does not fit.
    """

    origin: str
    column: str
    declared: str
    value_preview: str
    reason: str

    row_in_batch: int | None = not_passed(default=None)  # the position of the row with the value, if it is known

    def __str__(self) -> str:
        origin, column, declared, value, reason = self.args
        return (
            f"{origin} {value} in column {column!r}, which is declared as {declared}: {reason}; convert the column, or "
            "declare another type"
        )


@with_fields
class AggregateOverflowError(EkornError, OverflowError):
    """A sum of whole numbers of one key does not fit 64 bits.

    Args:
        aggregate: The aggregate, such as ``Sum('amount')``.
        total: The sum that does not fit.
    """

    aggregate: str
    total: int

    row_in_batch: int | None = not_passed(default=None)  # the position of the row in its batch, if it has one

    def __str__(self) -> str:
        aggregate, total = self.args
        return (
            f"{aggregate} of a key is {total} with this row, which exceeds 64 bits; sum a column of DOUBLE or DECIMAL "
            "instead"
        )


@with_fields
class RecordTooLargeError(EkornError):
    """A record is larger than any record that can be sent to another subtask."""

    size_bytes: int
    most_bytes: int
    key_preview: str | None

    emitted_by: int | None = not_passed(default=None)  # the operator of the chain that emitted the record, if known

    def __str__(self) -> str:
        size_bytes, most_bytes, key = self.args
        whose = "" if key is None else f" of key {key}"
        return (
            f"a record{whose} has {size_bytes} bytes when pickled, and the limit is {most_bytes}; "
            "split the record, send the address of a file instead, or raise ekorn.exchange.max-record-size up to 1 gb"
        )


@with_fields
class RecordFormatError(EkornError, ValueError):
    """Bytes or a text cannot be read as a record of a format, or a record cannot be written in it.

    Args:
        format_name: The format, such as CSV.
        reason: What is wrong with the content.
        content_preview: The content, as :func:`preview` returns it.
    """

    format_name: str
    reason: str
    content_preview: str

    def __str__(self) -> str:
        format_name, reason, content = self.args
        return f"{content} is not a record in {format_name}: {reason}"


@with_fields
class MalformedRecordError(EkornError, ValueError):
    """A place of a file or a message of a source cannot be read as a record.

    Args:
        place: Where it is, such as ``line 7 of '/data/in.csv'``.
        reason: What is wrong with the content.
        content_preview: The content, as :func:`preview` returns it.
    """

    place: str
    reason: str
    content_preview: str

    def __str__(self) -> str:
        place, reason, content = self.args
        return (
            f"cannot read {place}: {reason}; the content is {content}; correct it, or set ekorn.on-record-error to "
            "skip or dead-letter"
        )


@with_fields
class SchemaRegistryError(EkornError):
    """A schema registry refuses a schema, or cannot be reached; no record is at fault.

    Args:
        url: The address of the registry, without credentials.
        reason: What it answered, or what went wrong on the way.
    """

    url: str
    reason: str

    def __str__(self) -> str:
        url, reason = self.args
        return f"the schema registry at {url} gives no schema: {reason}"


@with_fields
class RecordErrorLimitExceeded(EkornError):
    """More records failed than ``ekorn.on-record-error.limit`` allows.

    Args:
        operator_name: The operator.
        limit: The limit.
        record_preview: The last record, as :func:`preview` returns it.
        reason: Why the last record failed.
    """

    operator_name: str
    limit: int
    record_preview: str | None
    reason: str

    def __str__(self) -> str:
        operator_name, limit, record, reason = self.args
        return (
            f"operator {operator_name!r} has skipped {limit} record(s), which is the limit of this subtask, and cannot "
            f"process record {record}: {reason}; raise ekorn.on-record-error.limit, or correct the function"
        )


@with_fields
class UserFunctionError(EkornError):
    """An exception of user code, as a slot sends it to the driver.

    The error holds text only: the class of the user's exception may not pickle, or not be importable in the driver.

    Args:
        operator_name: The operator.
        uid: The uid of the operator.
        subtask_index: The subtask of the operator.
        record_preview: The record in process, as :func:`preview` returns it.
        traceback_text: The traceback as text.
        original_type: The class of the exception.
        original_message: The message of the exception.
        original_retryable: Whether another attempt of the job may succeed.
        activity: What was done for the operator, if it was not the operator itself that ran.
        program_line: The innermost function and line of the program, if the traceback has one.
        reaches_outside: Whether a machine, a disk, a network or a service may be at fault.
    """

    operator_name: str
    uid: str | None
    subtask_index: int
    record_preview: str | None
    traceback_text: str
    original_type: str
    original_message: str = ""
    original_retryable: bool = True
    activity: str | None = None
    program_line: str | None = None
    reaches_outside: bool = False

    def __str__(self) -> str:
        name, uid, subtask, record, trace, original_type, message, _, activity, _, _ = self.args
        head = f"{original_type}: {message}" if message else original_type
        at = "" if record is None else f" while processing record {record}"
        return f"{head} in {where(name, uid, subtask, activity)}{at}\n{trace}".rstrip()
