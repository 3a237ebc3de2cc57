"""`JobProgress`: how far a job has come, for people to watch: as a value, as a line of text and as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from html import escape
from typing import NamedTuple

from ekorn.functions.results.job_status import JobStatus
from ekorn.types.time_bounds import watermark_text

__all__ = ["Fact", "JobProgress", "html_table"]


class Fact(NamedTuple):
    """One thing that is known about a job, as text."""

    name: str
    text: str


@dataclass(frozen=True)
class JobProgress:
    """The progress of a job, for people to watch."""

    status: JobStatus = JobStatus.CREATED
    attempt: int = 0
    epochs: int = 0
    records_read: int = 0
    last_epoch_ms: float = 0.0
    last_epoch_records: int = 0
    checkpoints_completed: int = 0
    checkpoints_failed: int = 0
    last_checkpoint_id: int | None = None
    last_checkpoint_bytes: int = 0
    last_checkpoint_ms: float = 0.0
    last_checkpoint_path: str | None = None
    restarts: int = 0
    last_failure: str | None = None
    watermark: int | None = None
    slot_pids: tuple[int, ...] = ()
    savepoints_completed: int = 0
    last_savepoint_path: str | None = None
    stopped_with: str | None = None  # the savepoint that the job was stopped with

    def facts(self) -> Iterator[Fact]:
        """Return what differs from a job that has not begun, as text."""
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name == "status":
                yield Fact(each.name, value.name)
            elif value == each.default:
                continue
            elif each.name == "watermark":
                yield Fact(each.name, watermark_text(value))
            else:
                yield Fact(each.name, f"{value:.1f}" if isinstance(value, float) else repr(value))

    def __repr__(self) -> str:
        return f"JobProgress({', '.join(f'{fact.name}={fact.text}' for fact in self.facts())})"

    def _repr_html_(self) -> str:
        return html_table(self.facts())


def html_table(facts: Iterable[Fact]) -> str:
    """Return a table with a row for each fact, for notebooks."""
    rows = "".join(
        f'<tr><th style="text-align: left">{escape(name.replace("_", " "))}</th>'
        f'<td style="text-align: left">{escape(text)}</td></tr>'
        for name, text in facts
    )
    return f"<table>{rows}</table>"
