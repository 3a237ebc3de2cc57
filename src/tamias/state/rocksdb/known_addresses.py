"""Addresses of the keys that are in use, so that a key that changes again need not be turned into bytes again.

They are kept in their own order as soon as that pays: RocksDB takes entries that come in order eight times as fast as
others, and a barrier writes all that changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import Any


class KnownAddresses:
    """The addresses of some keys of a table, of those whose address says all of the key."""

    def __init__(self) -> None:
        self._of: dict[Any, bytes] = {}
        self._in_order = 0  # how many of them, from the first one on, stand in the order of addresses
        self._fit = True

    def limit(self, entries: int, most: int) -> None:
        """Remember as long as there is memory for it, beside so many entries of a table that may have so many at most.

        An address takes up to two thirds of what an entry takes, so there is room for all as long as the table is not
        filled to more than three fifths.
        """
        self._fit = 5 * entries <= 3 * most
        if not self._fit:
            self.forget()

    def of(self, keys: set[Any]) -> tuple[list[Any], list[bytes]]:
        """Those keys of some that have one here, and where they are: in order, if they are many."""
        known = self._of
        if 2 * len(keys) < len(known):
            found = [key for key in keys if key in known]
            return found, [known[key] for key in found]
        if 2 * self._in_order < len(known):  # not as soon as they are known: most keys of windows never come again
            known = self._of = dict(sorted(known.items(), key=itemgetter(1)))
            self._in_order = len(known)
        if keys.issuperset(known):
            return list(known), list(known.values())
        found = [key for key in known if key in keys]
        return found, [known[key] for key in found]

    def unknown(self, keys: set[Any]) -> Iterable[Any]:
        """Those of some keys that have none here."""
        return keys.difference(self._of) if self._of else tuple(keys)

    def learn(self, key: Any, address: bytes) -> None:
        """Remember one, if there is room for it."""
        if self._fit:
            self._of[key] = address

    def drop(self, key: Any) -> None:
        """Forget one."""
        if self._of.pop(key, None) is not None and self._in_order:
            self._in_order -= 1  # or it was one behind these, and they are thought to be fewer than they are

    def forget(self) -> None:
        """Forget all."""
        self._of = {}
        self._in_order = 0
