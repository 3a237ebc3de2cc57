"""Options of a program: parallelism, time, chaining, names, and what a failing record does."""

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
    sentence="Whether results are emitted as records arrive (STREAMING) or only final ones (BATCH).",
    values=tuple(mode.name for mode in RuntimeExecutionMode),
)
PARALLELISM = count("parallelism.default", 1, "The parallelism of operators that have none of their own.", least=1)
MAX_PARALLELISM = ConfigOption(
    "pipeline.max-parallelism",
    parse_int,
    -1,
    sentence="The number of key groups of keyed state; -1 derives it from the parallelism.",
    check=_max_parallelism,
)
AUTO_WATERMARK_INTERVAL = millis(
    "pipeline.auto-watermark-interval", 200, "The interval of periodic watermarks; 0 is off."
)
HELD_WATERMARK_WARNING = millis(
    "ekorn.watermark.held-back-warning",
    60_000,
    "How long one split or input may hold the watermark back while others advance before a warning names it; 0 is off.",
)
TIME_CHARACTERISTIC = choice(
    "pipeline.time-characteristic",
    "EventTime",
    ("ProcessingTime", "IngestionTime", "EventTime"),
    "The time that time_window uses, and whether sources set timestamps (Flink 1.x).",
)
OPERATOR_CHAINING = flag(
    "pipeline.operator-chaining.enabled",
    True,
    "Whether operators that need no exchange between them run in one vertex.",
    "pipeline.operator-chaining",
)
CHAIN_DIFFERENT_MAX_PARALLELISM = flag(
    "pipeline.operator-chaining.chain-operators-with-different-max-parallelism",
    True,
    "Whether operators whose maximum parallelism differs may run in one vertex.",
)
OBJECT_REUSE = flag(
    "pipeline.object-reuse", False, "Whether chained functions may pass on one object without copying it."
)
GLOBAL_JOB_PARAMETERS = ConfigOption[dict[str, str]](
    "pipeline.global-job-parameters", parse_map, {}, sentence="Parameters that every function of the job can read."
)
CACHED_FILES = ConfigOption[list[str]](
    "pipeline.cached-files",
    parse_list,
    [],
    sentence="Files copied to every slot; entries of the form name:n,path:p,executable:true.",
)
AUTO_GENERATE_UIDS = flag(
    "pipeline.auto-generate-uids", True, "Whether uids are generated for operators that have none."
)
JOB_NAME = text("pipeline.name", "The job's name when execute() is given none.")
JOB_ID = text(
    "$internal.pipeline.job-id", "The id of the job, 32 hexadecimal digits, when a new driver continues an old job."
)
EXECUTIONS = ConfigOption[str | None](
    "$internal.executions",
    parse_choice("one", "many"),
    None,
    sentence="Whether a program that a service runs may call execute() once, or several times with an id for each job.",
)
ON_RECORD_ERROR = choice(
    "ekorn.on-record-error",
    "fail",
    ("fail", "skip", "dead-letter"),
    "What operators do with a record for which their function raises: fail the job, leave the record out, or send it "
    "to the stream of dead letters.",
)
RECORD_ERROR_LIMIT = ConfigOption[int | None](
    "ekorn.on-record-error.limit",
    parse_int,
    None,
    sentence="How many records one subtask of an operator may skip since the start of its attempt; one more fails the "
    "job. Any number if it is not set.",
    check=at_least(0),
)
PROGRESS: ConfigOption[Literal["auto", "off"]] = choice(
    "ekorn.progress",
    "auto",
    ("auto", "off"),
    "Whether lines about the job are written to standard error: if it is a terminal or a notebook, or never.",
)
CLOSURE_CLEANER = choice(
    "pipeline.closure-cleaner-level",
    "RECURSIVE",
    ("NONE", "TOP_LEVEL", "RECURSIVE"),
    "Accepted without effect; functions are pickled as they are.",
)
GENERIC_TYPES = flag("pipeline.generic-types", True, "Whether streams without a declared type are allowed.")
FORCE_AVRO = flag("pipeline.force-avro", False, "Accepted without effect.")
FORCE_KRYO = flag("pipeline.force-kryo", False, "Accepted without effect.")
