"""What a table of vectors notes for the next incremental checkpoint: ids of entries, and addresses that are gone."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from ekorn.columns.key_words import Rows

__all__ = ["TableChanges", "joined_changes"]


class TableChanges(Collection[Any]):
    """What changed between two snapshots. As a collection it has one element, itself; its length counts the entries.

    Args:
        ids: The ids of the entries that changed. They stay the same when entries are numbered anew.
        gone: The addresses of entries that are gone, some at a time, in the form of the table.
        gone_count: The number of these addresses.
    """

    __slots__ = ("gone", "gone_count", "ids")

    def __init__(self, ids: Rows, gone: list[Any], gone_count: int) -> None:
        self.ids = ids
        self.gone = gone
        self.gone_count = gone_count

    def __len__(self) -> int:
        return len(self.ids) + self.gone_count

    def __iter__(self) -> Iterator[TableChanges]:
        return iter((self,))

    def __contains__(self, other: object) -> bool:
        return other is self


def joined_changes(parts: Collection[Any]) -> TableChanges:
    """Return several changes as one."""
    if isinstance(parts, TableChanges):
        return parts
    changes: list[TableChanges] = list(parts)
    return TableChanges(
        np.concatenate([part.ids for part in changes]),
        [addresses for part in changes for addresses in part.gone],
        sum(part.gone_count for part in changes),
    )
