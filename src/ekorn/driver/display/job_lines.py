"""The lines that a person reads about a job: at its start, while it runs, and at its end. Pure: facts in, text out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ekorn.driver.display.job_progress import JobProgress
from ekorn.functions.results.job_status import JobStatus
from ekorn.graph.job_graph import JobGraph

__all__ = ["JobFacts", "end_line", "plan_lines", "progress_line", "start_line"]

_ENDS = {
    JobStatus.FINISHED: "finished",
    JobStatus.CANCELED: "was cancelled",
    JobStatus.FAILED: "failed",
    JobStatus.SUSPENDED: "was suspended",
}
_FIRST_DAY_MS = 24 * 3600 * 1000  # event time before the second of January 1970 counts something else


@dataclass(frozen=True)
class JobFacts:
    """What is known about a job when it starts.

    Attributes:
        engine: What runs the job, such as ``embedded Spark local[2]``.
        parallelism: The highest parallelism of an operator.
        is_default_parallelism: Whether neither the program nor the configuration set a parallelism.
        restored_from: The checkpoint or savepoint that the job starts from.
        restored_path: Where that is.
        is_resumed: Whether it is a checkpoint of this job, which an earlier driver took.
        log_path: The engine's log, if it has one of its own.
        web_address: Where the driver shows the job to browsers and tools.
    """

    job_name: str
    job_id: str
    engine: str
    parallelism: int
    is_default_parallelism: bool = False
    restored_from: str | None = None
    restored_path: str | None = None
    is_resumed: bool = False
    log_path: str | None = None
    web_address: str | None = None


def start_line(facts: JobFacts) -> str:
    """Return the line for the start of a job.

    >>> start_line(JobFacts("orders", "0ab1", "embedded Spark local[2]", 1, is_default_parallelism=True))
    "job 'orders' (0ab1) starts on embedded Spark local[2], parallelism 1 (default: parallelism.default is not set)"
    """
    line = f"job {facts.job_name!r} ({facts.job_id}) starts on {facts.engine}, parallelism {facts.parallelism}"
    if facts.is_default_parallelism:
        line += " (default: parallelism.default is not set)"
    if facts.restored_from is not None:
        line += f", from {facts.restored_from}"
    if facts.web_address is not None:
        line += f", web {facts.web_address}"
    return line if facts.log_path is None else f"{line}, log {facts.log_path}"


def plan_lines(graph: JobGraph) -> Iterator[str]:
    """Return a line for each vertex of a job: its operators, its parallelism, and the vertices that it reads from."""
    for vertex in graph.vertices:
        operators = " -> ".join(operator.name for operator in vertex.operators)
        sources = sorted({each.source for each in graph.inputs_of(vertex.id)})
        reads = f", reads from {', '.join(map(str, sources))}" if sources else ""
        yield f"vertex {vertex.id}: {operators}, parallelism {vertex.parallelism}{reads}"


def progress_line(progress: JobProgress, records_per_s: float, now_ms: int) -> str:
    """Return the line for a running job.

    Args:
        progress: The progress of the job.
        records_per_s: How many records sources read per second lately.
        now_ms: The time of day, from which the lag of the watermark is computed.
    """
    parts = [progress.status.name.lower(), _counted(progress.records_read, "record"), f"{records_per_s:,.0f}/s"]
    lag = _lag(progress.watermark, now_ms)
    if lag is not None:
        parts.append(f"watermark {lag} behind")
    if progress.last_checkpoint_id is not None:
        parts.append(f"checkpoint {progress.last_checkpoint_id}")
    if progress.checkpoints_failed:
        parts.append(f"{_counted(progress.checkpoints_failed, 'checkpoint')} failed")
    if progress.restarts:
        parts.append(_counted(progress.restarts, "restart"))
    return ", ".join(parts)


def end_line(job_name: str, progress: JobProgress, seconds: float) -> str:
    """Return the line for the end of a job.

    >>> end_line("orders", JobProgress(status=JobStatus.FINISHED, records_read=5), 1.25)
    "job 'orders' finished after 1.2 s: 5 records read"
    """
    was_stopped = progress.stopped_with is not None and progress.status is JobStatus.FINISHED
    how = "was stopped with a savepoint" if was_stopped else _ENDS.get(progress.status, "ended")
    line = f"job {job_name!r} {how} after {_length(seconds)}"
    line += f": {_counted(progress.records_read, 'record')} read"
    if progress.checkpoints_completed:
        line += f", {_counted(progress.checkpoints_completed, 'checkpoint')}"
    if progress.restarts:
        line += f", {_counted(progress.restarts, 'restart')}"
    return f"{line}; to continue it, run it with -s {progress.stopped_with}" if was_stopped else line


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _lag(watermark: int | None, now_ms: int) -> str | None:
    """Return how far event time is behind the time of day; None if it is not the time of day at all."""
    if watermark is None or not _FIRST_DAY_MS <= watermark <= now_ms:
        return None
    return _length((now_ms - watermark) / 1000)


def _length(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
