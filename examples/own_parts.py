"""A source, a sink, a file system and a reporter of one's own, each checked against the promises that Ekorn relies on.

    python examples/own_parts.py

The kits of `ekorn.testing.kits` play what happens to a job: batches of every size, checkpoints that complete or abort,
kills between any two steps, restores at another parallelism, readers beside writers, destinations that fail. With
pytest a kit is the base class of a test; here `check` runs it.
"""

from __future__ import annotations

import json
import sys
import tempfile
import uuid
from pathlib import Path

from fsspec import register_implementation
from fsspec.implementations.memory import MemoryFileSystem

from ekorn.datastream.connectors.base import Batch, Boundedness, Committer, Sink, SinkWriter, Source, Split, SplitReader
from ekorn.testing.kits import (
    FileStoreKit,
    ReporterCase,
    ReporterKit,
    SinkCase,
    SinkKit,
    SourceCase,
    SourceKit,
    open_files,
)

SHELVES = {"left": ["tea", "nuts", "salt"], "right": ["rice", "oats"]}  # stands for a system with pages


# ------------------------------------------------------------------------------------------------------------- a source


class Shelves(Source):
    """Reads the shelves; every shelf is a split."""

    boundedness = Boundedness.BOUNDED

    def discover_splits(self, parallelism):
        return [Split(name, name) for name in SHELVES]

    def create_reader(self, split, position):
        return ShelfReader(split.what, position)


class ShelfReader(SplitReader):
    """Reads one shelf from a position: the number of articles read."""

    def __init__(self, shelf, position):
        self.shelf, self.next = shelf, position or 0

    def read(self, max_records):
        found = SHELVES[self.shelf][self.next : self.next + max_records]
        self.next += len(found)
        return Batch(found)

    def position(self):
        return self.next

    @property
    def finished(self):
        return self.next == len(SHELVES[self.shelf])


class ShelvesCase(SourceCase):
    """The source, and what it must read."""

    def bounded(self):
        return Shelves()

    @property
    def records(self):
        return [article for shelf in SHELVES.values() for article in shelf]


# --------------------------------------------------------------------------------------------------------------- a sink


class Notes(Sink):
    """Writes a file of lines for each checkpoint: hidden when it is prepared, visible when it is committed."""

    def __init__(self, folder):
        self.folder = folder

    def create_writer(self, context, restored):
        return NotesWriter(self.folder)

    def create_committer(self):
        return NotesCommitter(self.folder)


class NotesWriter(SinkWriter):
    """Buffers records until a checkpoint."""

    def __init__(self, folder):
        self.folder = folder
        self.lines = []

    def write(self, value, timestamp):
        self.lines.append(value)

    def prepare_commit(self):
        if not self.lines:
            return []
        name = f"{uuid.uuid4().hex}.txt"
        Path(self.folder, f".{name}").write_text("\n".join(self.lines))
        self.lines = []
        return [name]


class NotesCommitter(Committer):
    """Renames files, unless that has happened already: a commit is repeated after a failure."""

    def __init__(self, folder):
        self.folder = folder

    def commit(self, committables):
        for name in committables:
            hidden = Path(self.folder, f".{name}")
            if hidden.exists():
                hidden.rename(Path(self.folder, name))


class NotesCase(SinkCase):
    """The sink, with a folder of its own."""

    def __init__(self, folder):
        self.folder = folder

    def sink(self):
        return Notes(self.folder)

    def record(self, number):
        return f"record {number}"

    def visible(self):
        files = [file for file in Path(self.folder).iterdir() if not file.name.startswith(".")]
        return [line for file in files for line in file.read_text().splitlines()]


# -------------------------------------------------------------------------------------------------------- a file system


class Attic(MemoryFileSystem):
    """A file system for `attic://`; one of your own extends fsspec's `AbstractFileSystem`."""

    protocol = "attic"
    store: dict = {}
    pseudo_dirs = [""]

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.replace("attic://", "memory://", 1))


# ----------------------------------------------------------------------------------------------------------- a reporter


class Board:
    """Writes the numbers of the last report to a file."""

    def __init__(self, path):
        self.path = path

    def report(self, samples):
        numbers = [[f"{each.scope}.{each.name}", dict(each.variables), each.value] for each in samples]
        Path(self.path).write_text(json.dumps(numbers))

    def close(self):
        Path(self.path).unlink(missing_ok=True)


class BoardCase(ReporterCase):
    """The reporter, with a file of its own."""

    def __init__(self, path):
        self.path = path

    def reporter(self):
        return Board(self.path)

    def received(self):
        return [value for _, _, value in json.loads(Path(self.path).read_text())]


def checked() -> list[str]:
    """Check all four; return what was checked."""
    register_implementation("attic", Attic, clobber=True)
    with tempfile.TemporaryDirectory() as folder:
        SourceKit.check(ShelvesCase)
        SinkKit.check(lambda: NotesCase(tempfile.mkdtemp(dir=folder)))
        FileStoreKit.check(lambda: open_files(f"attic://{uuid.uuid4().hex}/dir"))
        ReporterKit.check(lambda: BoardCase(Path(folder, f"{uuid.uuid4().hex}.json")))
    return ["a source", "a sink", "a file system", "a reporter"]


def main() -> int:
    """Print a line for each."""
    for what in checked():
        print(f"  {what} keeps its promises")
    return 0


if __name__ == "__main__":
    sys.exit(main())
