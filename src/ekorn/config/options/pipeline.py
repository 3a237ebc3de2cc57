"""Options of a program: parallelism, time, chaining, names, and records that cannot be processed."""

from __future__ import annotations

from typing import Literal

from ekorn.config.choices import RuntimeExecutionMode
from ekorn.config.option import ConfigOption
from ekorn.config.options.kinds import at_least, choice, count, flag, millis, text
from ekorn.config.value_text import parse_choice, parse_enum, parse_int, parse_list, parse_map


def _max_parallelism(value: int) -> str | None:
    return None if value == -1 or 0 < value <= 32768 else "must be between 1 and 32768, or -1 to derive it"


RUNTIME_MODE = ConfigOption(
    "execution.runtime-mode",
    parse_enum(RuntimeExecutionMode),
    RuntimeExecutionMode.STREAMING,
    sentence="When a job emits results: as records arrive (STREAMING), only final results after all input was "
    "read (BATCH), or BATCH if every source is bounded (AUTOMATIC).",
    values=tuple(mode.name for mode in RuntimeExecutionMode),
)
PARALLELISM = count("parallelism.default", 1, "The parallelism of operators that do not set their own.", least=1)
MAX_PARALLELISM = ConfigOption(
    "pipeline.max-parallelism",
    parse_int,
    -1,
    sentence="The number of key groups, which is the highest parallelism to which keyed state can be rescaled; -1 "
    "derives it from the parallelism.",
    check=_max_parallelism,
)
AUTO_WATERMARK_INTERVAL = millis(
    "pipeline.auto-watermark-interval",
    200,
    "The interval at which periodic watermarks are emitted; 0 disables them. In epochs, if it is not set, they are "
    "emitted at the end of each epoch.",
)
HELD_WATERMARK_WARNING = millis(
    "ekorn.watermark.held-back-warning",
    60_000,
    "How long one split or input may hold back the watermark while others advance, before a warning in "
    "the log names it; 0 disables the warning.",
)
TIME_CHARACTERISTIC = choice(
    "pipeline.time-characteristic",
    "EventTime",
    ("ProcessingTime", "IngestionTime", "EventTime"),
    "The time characteristic of a program written for Flink 1.x. It decides which time `time_window` uses "
    "and how sources assign timestamps.",
)
OPERATOR_CHAINING = flag(
    "pipeline.operator-chaining.enabled",
    True,
    "Whether operators with no exchange between them are chained into one vertex.",
    "pipeline.operator-chaining",
)
CHAIN_DIFFERENT_MAX_PARALLELISM = flag(
    "pipeline.operator-chaining.chain-operators-with-different-max-parallelism",
    True,
    "Whether operators with different maximum parallelism may be chained into one vertex.",
)
OBJECT_REUSE = flag("pipeline.object-reuse", False, "Whether chained operators pass records on without copying them.")
GLOBAL_JOB_PARAMETERS = ConfigOption[dict[str, str]](
    "pipeline.global-job-parameters", parse_map, {}, sentence="Parameters that every function of the job can read."
)
CACHED_FILES = ConfigOption[list[str]](
    "pipeline.cached-files",
    parse_list,
    [],
    sentence="Files that are copied to every slot. An entry has the form `name:n,path:p,executable:true`.",
)
AUTO_GENERATE_UIDS = flag(
    "pipeline.auto-generate-uids",
    True,
    "Whether operators without a uid get a generated one. If false, a job with such an operator is refused.",
)
JOB_NAME = text("pipeline.name", "The name of a job whose `execute()` call does not give one.")
JOB_ID = text(
    "$internal.pipeline.job-id",
    "The id of the job, 32 hexadecimal digits. The service sets it when a new driver continues a job.",
)
EXECUTIONS = ConfigOption[str | None](
    "$internal.executions",
    parse_choice("one", "many"),
    None,
    sentence="How many jobs a program of the service may start: `one`, or `many`, each with an id of its own. The "
    "service sets it.",
)
ON_RECORD_ERROR = choice(
    "ekorn.on-record-error",
    "fail",
    ("fail", "skip", "dead-letter"),
    "What an operator does with a record for which its function raises: fail the job, skip the record, "
    "or send it to the stream of dead letters.",
)
RECORD_ERROR_LIMIT = ConfigOption[int | None](
    "ekorn.on-record-error.limit",
    parse_int,
    None,
    sentence="How many records one subtask of an operator may skip in one attempt before the job fails. By "
    "default, there is no limit.",
    check=at_least(0),
)
ERROR_FRAMES: ConfigOption[Literal["program", "all"]] = choice(
    "ekorn.errors.frames",
    "program",
    ("program", "all"),
    "Which frames the tracebacks of errors show: those of the program and of the packages that it uses, or also those "
    "inside Ekorn, PySpark, Py4J and cloudpickle. Errors of Ekorn itself always show all frames.",
)
PROGRESS: ConfigOption[Literal["auto", "off"]] = choice(
    "ekorn.progress",
    "auto",
    ("auto", "off"),
    "Whether lines about a job are written to standard error. With `auto`, the start and the end of a job are "
    "reported, and its progress in between if standard error is a terminal or a notebook. With `off`, nothing is.",
)
CLOSURE_CLEANER = choice(
    "pipeline.closure-cleaner-level",
    "RECURSIVE",
    ("NONE", "TOP_LEVEL", "RECURSIVE"),
    "Accepted without effect: functions are pickled as they are.",
)
GENERIC_TYPES = flag("pipeline.generic-types", True, "Accepted without effect: streams need no declared type.")
FORCE_AVRO = flag("pipeline.force-avro", False, "Accepted without effect.")
FORCE_KRYO = flag("pipeline.force-kryo", False, "Accepted without effect.")
