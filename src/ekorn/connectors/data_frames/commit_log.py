"""`CommitLog`: the order in which streaming queries read the files of a `RowFilesSink`.

The subtasks of a sink commit independently, in any order. A streaming query needs offsets: numbers that always stand
for the same files. So a reader that finds marks of files adds these files to a log, as one entry under the next number.
An entry is published whole and never changes. Each file is in exactly one entry, even with several readers: two readers
cannot publish the same number, and the later one reads the entry of the earlier one. The mark of a file that is in the
log is removed. A commit that is repeated after a crash creates the mark again, and the next reader removes it again.
"""

from __future__ import annotations

import contextlib

from ekorn.connectors.data_frames.row_files_sink import DATA, MARKS, marked_files
from ekorn.connectors.data_frames.written_rows import Manifest, RowFile, manifest_bytes, parse_manifest
from ekorn.errors import RowFilesGone
from ekorn.storage.file_store import FileStore

__all__ = ["LOG", "CommitLog", "path_of"]

LOG = "log"


class CommitLog:
    """The log of one folder, as one reader knows it. Entry 0 is the empty beginning."""

    def __init__(self, files: FileStore) -> None:
        self._files = files
        self._entries: dict[int, tuple[RowFile, ...]] = {}
        self._entered: set[str] = set()

    def advance(self) -> int:
        """Enter the files that were committed since the last entry; return the number of the last entry."""
        while True:
            last = self._refresh()
            new = marked_files(self._files, self._entered)
            if not new:
                self._remove_marks()
                return last
            try:
                self._files.publish(_name(last + 1), manifest_bytes(Manifest(tuple(new), "")))
            except FileExistsError:
                continue  # another reader entered files in the meantime
            self._remember(last + 1, tuple(new))
            self._remove_marks()
            return last + 1

    def files_between(self, start: int, end: int) -> list[RowFile]:
        """Return the files of the entries behind `start` up to `end`.

        Raises:
            RowFilesGone: There is no such entry: the folder was emptied since.
        """
        self._refresh()
        missing = [number for number in range(start + 1, end + 1) if number not in self._entries]
        if missing:
            raise RowFilesGone(f"{self._files.url}/{_name(missing[0])}")
        return [file for number in range(start + 1, end + 1) for file in self._entries[number]]

    def all_files(self) -> list[RowFile]:
        """Return all files that were committed until now, whether or not they are in the log."""
        while True:
            last = self._refresh()
            marked = marked_files(self._files, self._entered)
            if self._refresh() == last:  # otherwise a file may have moved from its mark to the log in between
                return self.files_between(0, last) + marked

    def _refresh(self) -> int:
        for name in self._files.list(LOG):
            number = int(name.removesuffix(".json")) if name.endswith(".json") else 0
            if number and number not in self._entries:
                path = _name(number)
                self._remember(number, parse_manifest(self._files.read(path), f"{self._files.url}/{path}").files)
        return max(self._entries, default=0)

    def _remember(self, number: int, files: tuple[RowFile, ...]) -> None:
        self._entries[number] = files
        self._entered.update(file.name for file in files)

    def _remove_marks(self) -> None:
        for mark in self._files.list(MARKS):
            if mark.removesuffix(".json") in self._entered:
                with contextlib.suppress(OSError):  # a mark that remains is skipped by its name
                    self._files.delete(f"{MARKS}/{mark}")


def path_of(file: RowFile) -> str:
    """Return the path of a file below the folder of its sink."""
    return f"{DATA}/{file.name}"


def _name(number: int) -> str:
    return f"{LOG}/{number:012d}.json"
