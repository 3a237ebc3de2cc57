"""`split` and `select`: the names that a selector gives to a record, and the side output of a set of names."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from ekorn.functions.record_functions import Function

_PREFIX = "select "


class OutputSelector(Function):
    """Gives names to records; `SplitStream.select` then chooses records by name."""

    @abstractmethod
    def select(self, value: Any) -> Iterable[str]:
        """Return any number of names for a record."""


def tag_of(names: Iterable[str]) -> str:
    """Return the side output of the records that have one of these names.

    Example:
        >>> tag_of(["odd", "even", "odd"])
        'select ["even", "odd"]'
    """
    return _PREFIX + json.dumps(sorted(set(names)))


def names_in(tag: str) -> frozenset[str]:
    """Return the names from which `tag_of` made a tag."""
    assert tag.startswith(_PREFIX), "only select() reads the side outputs of a split"
    return frozenset(json.loads(tag.removeprefix(_PREFIX)))
