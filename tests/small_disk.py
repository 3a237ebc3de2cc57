"""A small file system of a test: it can be filled, freed and made read-only."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class Disk:
    """A small file system that can be filled and made read-only."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._filler = path / "filler"

    def fill(self) -> None:
        """Use up all free space, also what was freed since the last call."""
        with self._filler.open("ab", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(65536))
            except OSError:
                pass

    def free(self) -> None:
        self._filler.unlink()

    def make_read_only(self) -> None:
        subprocess.run(["mount", "-o", "remount,ro", str(self.path)], check=True)


@contextmanager
def small_disk() -> Iterator[Disk]:
    """Mount a file system of 6 MB in memory; the test is skipped if the user may not."""
    place = Path(tempfile.mkdtemp(prefix="disk"))  # a short path: sockets are created below it
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(place)], check=False, capture_output=True
    )
    if mounted.returncode:
        place.rmdir()
        pytest.skip("only root may mount a small file system")
    try:
        yield Disk(place)
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)
        place.rmdir()
