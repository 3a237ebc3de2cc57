"""`split` and `select`: which names a record has, and the side output that stands for a choice of names."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from tamias.functions.record_functions import Function

_PREFIX = "select "


class OutputSelector(Function):
    """Gives names to records, by which a `SplitStream` is then selected from."""

    @abstractmethod
    def select(self, value: Any) -> Iterable[str]:
        """Return the names of a record: any number of them, also none."""


def tag_of(names: Iterable[str]) -> str:
    """Return the side output for records that have one of these names.

    Example:
        >>> tag_of(["odd", "even", "odd"])
        'select ["even", "odd"]'
    """
    return _PREFIX + json.dumps(sorted(set(names)))


def names_in(tag: str) -> frozenset[str]:
    """What `tag_of` was given."""
    assert tag.startswith(_PREFIX), "only select() reads the side outputs of a split"
    return frozenset(json.loads(tag.removeprefix(_PREFIX)))
