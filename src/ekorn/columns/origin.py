"""`Origin`: where the rows of a batch come from, for errors that name a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

__all__ = ["Origin", "joined_origins"]


@dataclass(frozen=True, slots=True)
class Origin:
    """A run of rows of a source.

    Attributes:
        place: What has the rows, such as ``'/data/orders.parquet'`` in quotes.
        first: The number of the first row there.
        count: The number of rows.
        exact: Whether the batch has exactly these rows, in this order. Otherwise it has some of them.
        unit: What the source counts.
    """

    place: str
    first: int
    count: int
    exact: bool = True
    unit: str = "row"

    def part(self, start: int, length: int) -> Origin:
        """Return the origin of a run of rows of the batch."""
        return replace(self, first=self.first + start, count=length) if self.exact else self

    def some(self) -> Origin:
        """Return the origin of some rows of the batch, or of rows in another order."""
        return replace(self, exact=False) if self.exact else self

    def of_row(self, position: int) -> str:
        """Return where a row of the batch comes from, as text.

        >>> Origin("'orders.parquet'", 1000, 500).of_row(7)
        "row 1007 of 'orders.parquet'"
        >>> Origin("'orders.parquet'", 1000, 500).some().of_row(7)
        "one of the rows 1000 to 1499 of 'orders.parquet'"
        """
        if self.exact or self.count == 1:
            return f"{self.unit} {self.first + (position if self.exact else 0)} of {self.place}"
        return f"one of the {self.unit}s {self.first} to {self.first + self.count - 1} of {self.place}"


def joined_origins(origins: Sequence[Origin | None]) -> Origin | None:
    """Return the origin of batches behind each other; None if they have not one place."""
    known = [origin for origin in origins if origin is not None]
    if not known or len(known) < len(origins) or len({(origin.place, origin.unit) for origin in known}) > 1:
        return None
    first = min(origin.first for origin in known)
    end = max(origin.first + origin.count for origin in known)
    follow = all(one.first + one.count == other.first for one, other in pairwise(known))
    return Origin(known[0].place, first, end - first, follow and all(origin.exact for origin in known), known[0].unit)
