"""The addresses of keys in use, so that a key that changes again is not encoded again.

The addresses are sorted as soon as that pays: RocksDB takes sorted entries eight times as fast as others, and a barrier
writes all changed entries.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import Any


class KnownAddresses:
    """The addresses of some keys of a table. A key is here only if it can be read back from its address."""

    def __init__(self) -> None:
        self._of: dict[Any, bytes] = {}
        self._in_order = 0  # how many addresses, from the first on, are sorted
        self._fit = True

    def limit(self, entries: int, most: int) -> None:
        """Forget all addresses if the table, with `entries` of at most `most` entries, leaves no memory for them.

        An address takes up to two thirds of the memory of an entry, so all addresses fit as long as the table is filled
        to at most three fifths.
        """
        self._fit = 5 * entries <= 3 * most
        if not self._fit:
            self.forget()

    def of(self, keys: set[Any]) -> tuple[list[Any], list[bytes]]:
        """Return those of the keys that are known, and their addresses; sorted by address if they are many."""
        known = self._of
        if 2 * len(keys) < len(known):
            found = [key for key in keys if key in known]
            return found, [known[key] for key in found]
        if 2 * self._in_order < len(known):  # not earlier: most keys of windows never come again
            known = self._of = dict(sorted(known.items(), key=itemgetter(1)))
            self._in_order = len(known)
        if keys.issuperset(known):
            return list(known), list(known.values())
        found = [key for key in known if key in keys]
        return found, [known[key] for key in found]

    def unknown(self, keys: set[Any]) -> Iterable[Any]:
        """Return those of the keys that are not known."""
        return keys.difference(self._of) if self._of else tuple(keys)

    def learn(self, key: Any, address: bytes) -> None:
        """Remember the address of a key, if there is room for it."""
        if self._fit:
            self._of[key] = address

    def drop(self, key: Any) -> None:
        """Forget the address of a key."""
        if self._of.pop(key, None) is not None and self._in_order:
            self._in_order -= 1  # one too low, which is harmless, if the key was behind the sorted ones

    def forget(self) -> None:
        """Forget all addresses."""
        self._of = {}
        self._in_order = 0
