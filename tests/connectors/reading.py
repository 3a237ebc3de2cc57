"""Reads a source through steps with crashes, as the kit of sources does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ekorn.datastream.connectors.base import Source
from ekorn.testing.kits import SourceJob


def read_with_crashes(source: Source, steps: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Read a bounded source to its end, through steps: ('read', subtask, count), ('checkpoint',), ('crash', p)."""
    job = SourceJob(source, 2)
    kept: list[Any] = []  # records up to the last checkpoint
    since: list[Any] = []
    saved: list[tuple[Any, ...]] | None = None
    for step in steps:
        match step:
            case ("read", subtask, count):
                since += job.read(subtask, count)
            case ("checkpoint",):
                saved = job.snapshot()
                kept, since = kept + since, []
            case ("crash", parallelism):
                job, since = SourceJob(source, parallelism, saved), []
    return kept + since + job.read_all()
