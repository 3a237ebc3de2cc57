"""Where a schedule's job finds the services that it reads and writes: a file beside the folder of its output."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = "places.json"
ENOUGH = "enough"  # a file in the same folder: the output is complete, and a job without an end is to be cancelled


@dataclass(frozen=True)
class Places:
    """The services of one schedule."""

    output: str = "files"  # or "rows", "topic"
    database: str = ""  # the URL of a database with the tables numbers (id) and lines (stream, line)
    brokers: str = ""
    prefix: str = ""  # of the topics

    @property
    def numbers(self) -> str:
        """The topic of the numbers."""
        return self.topic_of("input")

    def topic_of(self, name: str) -> str:
        """Return the topic of a stream."""
        return f"{self.prefix}-{name}"

    def write(self, folder: Path) -> None:
        (folder / FILE).write_text(json.dumps(asdict(self)))

    @staticmethod
    def beside(output: Path) -> Places:
        """Return the places of the schedule whose files are in a folder."""
        file = output.parent / FILE
        return Places(**json.loads(file.read_text())) if file.exists() else Places()
