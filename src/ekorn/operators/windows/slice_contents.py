"""The contract of slice contents: what slices keep of a key's records, and how a window's contents are made from them.

A window must accumulate exactly what it would accumulate if its records had been added to it one by one in order of
arrival. `sliced_records.py` does that for lists of records, `sliced_values.py` for values that can be combined.
`combinable_contents.py` says which contents can be kept in slices at all.

All slices of a key are stored in one flat list, a strip. A flat list needs the least memory, which matters because a
key with a record in each of sixty slices has many items. A strip holds the starts of slices and arrival numbers.
Arrival numbers are comparable between keys, a later arrival has a higher one, and no two slices of a key share one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ekorn.codegen.code_builder import CodeBuilder
from ekorn.operators.windows.contents import Contents

Strip = list[Any]

SavedSlice = tuple[Any, list[int]]
"""One slice of one key in a checkpoint: contents as a window saves them, and arrival numbers."""


class SliceContents(ABC):
    """Adds records to strips, and makes the contents of windows from strips."""

    step = 0
    """The number of items of a strip that belong together: the start of a slice, an arrival number, and the rest."""

    min_windows_per_record: int
    """From how many windows per record slices are less work (docs/decisions/0011-sliding-windows-in-slices.md)."""

    is_combinable: Callable[[Any], bool] | None = None
    """Says whether a record can be combined with others; None if all can. One that cannot ends the use of slices."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents

    @abstractmethod
    def generate_first(self, code: CodeBuilder, strip: str, start: str, arrival: str, value: str) -> None:
        """Generate the statements that add a key's first record of a slice at the end of a strip.

        Variables hold the strip and the record. Expressions give the slice's start, which is one object for all strips,
        and a new arrival number.
        """

    @abstractmethod
    def generate_more(self, code: CodeBuilder, strip: str, arrival: str, value: str) -> None:
        """Generate the statements that add a record to the last slice of a strip."""

    @abstractmethod
    def add(self, strip: Strip, start_ms: int, arrival: int, value: Any) -> None:
        """Add a record to any slice of a strip."""

    @abstractmethod
    def remove(self, strip: Strip, start_ms: int, *, in_order: bool) -> None:
        """Remove a slice, if the strip has it. The strip has no earlier slice; a strip in order has a later one."""

    @abstractmethod
    def is_in_order(self, strip: Strip) -> bool:
        """Return whether all records of each slice arrived before all records of later slices."""

    @abstractmethod
    def first_arrival(self, strip: Strip, low_ms: int, high_ms: int) -> int | None:
        """Return the arrival number of the first record in the slices that start in [low_ms, high_ms), or None."""

    @abstractmethod
    def window_contents(self, strip: Strip, low_ms: int, high_ms: int, *, in_order: bool) -> Any:
        """Return the contents of a window whose slices start in [low_ms, high_ms), or MISSING.

        Changing the contents does not change the strip, except for changes to the records in a list.
        """

    def next_window_contents(self, key: Any, strip: Strip, low_ms: int, high_ms: int) -> Any:
        """Return the contents of a key's next window. The strip is in order, and windows are asked for in order."""
        return self.window_contents(strip, low_ms, high_ms, in_order=True)

    def drop_cache(self, key: Any) -> None:  # noqa: B027
        """Drop what is cached between consecutive windows of a key."""

    def drop_caches(self) -> None:  # noqa: B027
        """Drop what is cached for all keys."""

    @abstractmethod
    def snapshot(self, strip: Strip) -> dict[int, SavedSlice]:
        """Return what a checkpoint holds of each slice, by its start."""

    @abstractmethod
    def snapshot_slice(self, strip: Strip, start_ms: int, *, in_order: bool) -> SavedSlice | None:
        """Return what a checkpoint holds of one slice, or None if the strip does not have it."""

    @abstractmethod
    def restore(self, slices: list[tuple[int, SavedSlice]]) -> Strip:
        """Return the strip of a key with these slices."""


def grouped(strip: Strip, step: int) -> Iterator[Any]:
    """Yield the items of a strip that belong together, as tuples."""
    items: list[Iterable[Any]] = [iter(strip)] * step
    return zip(*items, strict=True)
