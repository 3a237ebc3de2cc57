"""Batches of rows that a streaming query writes and a job reads, through a folder (docs/formats/row-files.md).

    batches/<id>/*.parquet   the rows of a batch
    ready/<id>.json          its manifest, written last: the batch is complete and will never change
    read/<lane>-of-<n>.json  the batch at which a lane continues, as of the last completed checkpoint
    from.json                the batch at which a job without restored positions begins
    end.json                 the last batch of a query that has ended, and why it ended
    again.json               a job that was restarted asks a query that has failed to go on
    begin.json               of a source of Spark: the batch at which its lanes begin, and its offset

A lane is a share of the files of every batch, read in the order of the batches by one subtask at a time. A batch is
deleted when every lane is behind it. The manifest of the newest batch stays: a query that is started again repeats its
last batch, and the manifest says that it was written.
"""

from __future__ import annotations

import contextlib
import json
from typing import Any, NamedTuple

from ekorn.connectors.data_frames.written_rows import Manifest, RowFile, manifest_bytes, parse_manifest
from ekorn.errors import RowFilesDamaged
from ekorn.storage.file_store import FileStore

__all__ = ["Beginning", "EndOfQuery", "Lane", "RowBatches", "batch_path"]

_READY, _READ, _FROM, _BEGIN = "ready", "read", "from.json", "begin.json"
_END, _AGAIN = "end.json", "again.json"


class Lane(NamedTuple):
    """One of several shares of every batch. Checkpoints hold it as a plain tuple."""

    number: int
    lanes: int

    def holds(self, batch_id: int, file_index: int) -> bool:
        """Return whether a file belongs to this lane. Files rotate, so that batches of one file reach every lane."""
        return (file_index + batch_id) % self.lanes == self.number


class EndOfQuery(NamedTuple):
    """The end of a streaming query: its last batch, -1 for none, and the reason if it failed."""

    last_batch: int
    query: str
    failure: str | None


class Beginning(NamedTuple):
    """Where the lanes of a source of Spark begin: all at the same batch, whose rows follow an offset of the source.

    Without an offset the source begins at its own beginning. `home` is the folder in which the source keeps its notes.
    """

    batch_id: int
    offset: str | None
    home: str


class RowBatches:
    """The folder as the writer of batches and the readers of lanes use it."""

    def __init__(self, files: FileStore) -> None:
        self._files = files
        self._failures = 0  # failures of the query, as counted by its writer
        self._known_failures = 0  # failures of the query before this reader began

    # ------------------------------------------------------------------------------ for the query

    def begin(self) -> None:
        """Prepare the folder for a query that starts, perhaps again."""
        self._files.delete(_END)
        self._files.delete(_AGAIN)
        done = self.read_by_all()
        if done is not None:
            self._files.replace(_FROM, json.dumps({"batch": done}).encode())
        self.prune()
        for name in self._files.list(_READ):
            self._files.delete(f"{_READ}/{name}")

    def is_written(self, batch_id: int) -> bool:
        """Return whether a batch is complete. A query repeats only its last batch."""
        return batch_id <= max(self.ready(), default=-1)

    def publish(self, batch_id: int, files: tuple[RowFile, ...], end_offset: str | None = None) -> None:
        """Publish a complete batch; for a source of Spark, with the offset at which the next batch begins."""
        self._files.publish(f"{_READY}/{_name(batch_id)}.json", manifest_bytes(Manifest(files, "", end_offset)))

    def unread(self) -> int:
        """Return the number of batches that no completed checkpoint covers."""
        begin = self.read_by_all()
        begin = self.first_batch() if begin is None else begin
        return sum(1 for batch_id in self.ready() if begin is None or batch_id >= begin)

    def end(self, query: str, failure: str | None) -> None:
        """Record that the query has ended, so that its readers end too."""
        self._failures += failure is not None
        last = max(self.ready(), default=-1)
        end = {"last": last, "query": query, "failure": failure, "failures": self._failures}
        self._files.replace(_END, json.dumps(end).encode())

    def go_on_if_asked(self) -> bool:
        """Forget the end of a failed query if a restarted job asks for more; return whether it does."""
        asked = self._content_if_any(_AGAIN)
        if asked is None or asked["failures"] < self._failures:
            return False
        self._files.delete(_END)
        self._files.delete(_AGAIN)
        return True

    def prune(self) -> None:
        """Delete batches that every lane has read, as of a completed checkpoint."""
        done = self.read_by_all()
        if done is None:
            return
        ready = self.ready()
        for batch_id in ready:
            if batch_id < done and batch_id != ready[-1]:
                self._files.delete(f"{_READY}/{_name(batch_id)}.json")
        for name in self._files.list("batches"):
            if name.isdigit() and int(name) < done:
                self._files.delete_tree(f"batches/{name}")

    def read_by_all(self) -> int | None:
        """Return the first batch that some lane has not read as of a completed checkpoint; None if none is known."""
        lanes: dict[int, dict[int, int]] = {}
        for name in self._files.list(_READ):
            if not name.endswith(".json"):
                continue  # the mark is being written
            number, _, count = name.removesuffix(".json").partition("-of-")
            lanes.setdefault(int(count), {})[int(number)] = self._number(f"{_READ}/{name}")
        complete = [min(group.values()) for count, group in lanes.items() if len(group) == count]
        return min(complete) if complete and len(complete) == len(lanes) else None

    def beginning(self) -> Beginning | None:
        """Return where the lanes of a source of Spark begin, or None before a lane has recorded it."""
        content = self._content_if_any(_BEGIN)
        return None if content is None else Beginning(content["batch"], content["offset"], content["home"])

    # ------------------------------------------------------------------------------ for the lanes

    def begin_at(self, beginning: Beginning) -> None:
        """Record where the lanes begin. Every lane records the same; only the first start of a job counts."""
        batch_id, offset, home = beginning
        content = {"batch": batch_id, "offset": offset, "home": home}
        with contextlib.suppress(FileExistsError):
            self._files.publish(_BEGIN, json.dumps(content).encode())

    def ready(self) -> list[int]:
        """Return the complete batches, in order."""
        return sorted(int(name.removesuffix(".json")) for name in self._files.list(_READY) if name.endswith(".json"))

    def manifest_of(self, batch_id: int) -> Manifest:
        """Return the manifest of a complete batch."""
        path = f"{_READY}/{_name(batch_id)}.json"
        return parse_manifest(self._files.read(path), f"{self._files.url}/{path}")

    def first_batch(self) -> int | None:
        """Return the batch at which a job without restored positions begins; None for the oldest existing one."""
        return self._number(_FROM) if self._files.exists(_FROM) else None

    def mark_read(self, lane: Lane, batch_id: int) -> None:
        """Note that a completed checkpoint covers all batches of a lane below this one."""
        self._files.replace(f"{_READ}/{lane.number}-of-{lane.lanes}.json", json.dumps({"batch": batch_id}).encode())

    def ended(self) -> EndOfQuery | None:
        """Return the end of the query, or None while it runs or is asked to continue."""
        content = self._content_if_any(_END)
        if content is None or (content["failure"] is not None and content["failures"] <= self._known_failures):
            return None
        return EndOfQuery(content["last"], content["query"], content["failure"])

    def ask_again(self) -> None:
        """Ask a failed query to continue. A restarted job does that, because it has already handled the failure."""
        content = self._content_if_any(_END)
        if content is not None and content["failure"] is not None:
            self._known_failures = content["failures"]
            self._files.replace(_AGAIN, json.dumps({"failures": self._known_failures}).encode())

    def _number(self, path: str) -> int:
        content = self._content(path)
        return int(content["batch"])

    def _content_if_any(self, path: str) -> dict[str, Any] | None:
        try:
            return self._content(path)
        except FileNotFoundError:
            return None

    def _content(self, path: str) -> dict[str, Any]:
        data = self._files.read(path)
        try:
            content = json.loads(data)
            if not isinstance(content, dict):
                raise ValueError("no object")
            return content
        except ValueError as error:
            raise RowFilesDamaged(f"{self._files.url}/{path}", str(error), "a JSON object") from None


def batch_path(batch_id: int) -> str:
    """Return the path of a batch's files below the folder."""
    return f"batches/{_name(batch_id)}"


def _name(batch_id: int) -> str:
    return f"{batch_id:012d}"
