"""The record of a job that the service keeps on disk, so that a service that starts again finds its jobs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple

from ekorn.errors import ConfigurationError

__all__ = ["JobPlan", "JobRecord", "NotedOutcome", "decode_record", "encode_record"]

_VERSION = 1

Phase = Literal["WAITING", "STARTED", "ENDED"]


@dataclass(frozen=True)
class JobPlan:
    """What a driver of a job runs: the part of a record that a change of the job replaces."""

    program: str
    script: str
    arguments: tuple[str, ...]
    settings: Mapping[str, str]
    slots: int


@dataclass(frozen=True)
class JobRecord:
    """One job of the service.

    Attributes:
        job_id: The id of the job: 32 hex digits.
        name: The name for people: that of the script, until the job has one of its own.
        program: The digest and the name of the program, as the service stores it.
        script: The script in the program.
        arguments: The arguments of the script.
        settings: The settings of the job's environments.
        slots: How many slots the job may take.
        slot_memory_bytes: How much memory each of them claims.
        submitted_ms: When the job was submitted, in milliseconds since 1970.
        phase: Whether the job waits for slots, has a driver, or has ended.
        why: Why the job waits, or how it ended.
        status: The status that it ended with; empty before.
        pid: The process of the driver.
        pid_started: When the process started, as the system counts. Process ids are reused.
        socket: Where the driver answers.
        started_ms: When the driver was started.
        ended_ms: When the service learned of the end.
        cancelled: Whether its driver was ended on request before the job started.
        then: What the job continues with once it has stopped with a savepoint.
        fallback: What the job continues with if `then` does not prove itself. Set as long as the job is on trial.
        trial_ms: When the job was first seen to run on trial; 0 if it was not.
        going_back: Why the trial has failed; empty if it has not.
        run: Names this start of the driver in its outcome on a storage that services share; otherwise empty.
        host: The machine of the driver; empty for a service without standbys.
        submission_id: The client's id of its request, which it may have sent twice; empty if it gave none.
        lost_drivers: How many drivers of the job were lost in a row, each after a short time.
    """

    job_id: str
    name: str
    program: str
    script: str
    arguments: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    slots: int = 1
    slot_memory_bytes: int = 0
    submitted_ms: int = 0
    phase: Phase = "WAITING"
    why: str = ""
    status: str = ""
    pid: int = 0
    pid_started: int = 0
    socket: str = ""
    started_ms: int = 0
    ended_ms: int = 0
    cancelled: bool = False
    then: JobPlan | None = None
    fallback: JobPlan | None = None
    trial_ms: int = 0
    going_back: str = ""
    run: str = ""
    host: str = ""
    submission_id: str = ""
    lost_drivers: int = 0

    @property
    def plan(self) -> JobPlan:
        """The plan that the job's driver runs."""
        return JobPlan(self.program, self.script, self.arguments, self.settings, self.slots)

    @property
    def status_without_driver(self) -> str:
        """The status of the job as the service alone knows it: that of its end, or how far its start has come."""
        return self.status or ("CREATED" if self.phase == "WAITING" else "INITIALIZING")

    @property
    def is_changing(self) -> bool:
        """Whether the job is on its way from one plan to another."""
        return self.then is not None or self.fallback is not None

    @property
    def needed_programs(self) -> set[str]:
        """The programs that the job may still be started with: none once it has ended."""
        return set() if self.phase == "ENDED" else self.named_programs

    @property
    def named_programs(self) -> set[str]:
        """The programs that the job was started with, or may be: they are kept as long as the job is remembered."""
        return {plan.program for plan in (self.plan, self.then, self.fallback) if plan is not None}

    def running(self, plan: JobPlan) -> JobRecord:
        """Return the record with another plan."""
        return replace(
            self,
            program=plan.program,
            script=plan.script,
            arguments=plan.arguments,
            settings=plan.settings,
            slots=plan.slots,
        )


class NotedOutcome(NamedTuple):
    """How a job ended, as its driver noted it: the status, and the savepoint that it stopped with."""

    status: str
    savepoint: str | None


def encode_record(record: JobRecord) -> bytes:
    """Return a record as JSON."""
    return json.dumps({"version": _VERSION, **asdict(record)}, indent=1).encode()


def decode_record(data: bytes, where: str) -> JobRecord:
    """Return the record in a file.

    Raises:
        ConfigurationError: The file holds no record, or one of a later version.
    """
    try:
        found: dict[str, Any] = json.loads(data)
        version = found.pop("version")
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise ConfigurationError(f"{where} does not contain a job of a service: {error}") from error
    if version != _VERSION:
        raise ConfigurationError(f"{where} has version {version!r}; this service reads version {_VERSION}")
    known = {each.name for each in fields(JobRecord)}
    try:
        kept = {name: value for name, value in found.items() if name in known}
        plans = {name: _plan(kept.get(name)) for name in ("then", "fallback")}
        return JobRecord(**{**kept, **plans, "arguments": tuple(found["arguments"])})
    except (TypeError, KeyError) as error:
        raise ConfigurationError(f"{where} does not contain a job of a service: {error}") from error


def _plan(found: dict[str, Any] | None) -> JobPlan | None:
    return None if found is None else JobPlan(**{**found, "arguments": tuple(found["arguments"])})
