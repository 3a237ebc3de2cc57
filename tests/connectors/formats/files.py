"""Files of formats for tests: written through the writers of the formats, in this process."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ekorn.connectors.formats.schemas import BulkWriterFactory
from ekorn.functions.source_contract import Malformed
from ekorn.testing.kits import SourceJob


def write_file(path: Path, factory: BulkWriterFactory, records: Iterable[Any], *, flush_every: int = 0) -> Path:
    """Write records to a file; `flush_every` ends a block of the format after that many records."""
    stream = io.BytesIO()  # stays open for a writer that fails, and writes its end when it is garbage
    writer = factory.create(stream)
    for number, record in enumerate(records, 1):
        writer.add_element(record)
        if flush_every and number % flush_every == 0:
            writer.flush()
    writer.finish()
    path.write_bytes(stream.getvalue())
    return path


def read_file(file_format: Any, path: Path, batch: int = 100) -> tuple[list[Any], list[Malformed]]:
    """Return the records of a file, and what in it is not a record."""
    reader = file_format.create_reader(str(path), 0, None, None)
    values: list[Any] = []
    malformed: list[Malformed] = []
    while not reader.finished:
        found = reader.read(batch)
        values += found.values
        malformed += found.malformed
    reader.close()
    return values, malformed


def read_source(source: Any, parallelism: int = 1) -> list[Any]:
    return SourceJob(source, parallelism).read_all()
