"""`Unfinished`: a part of a DataSet program that has no records yet, such as a join without keys."""

from __future__ import annotations

from typing import ClassVar

from ekorn.batch.program.data_set import DataSet
from ekorn.program.checks.attribute_suggestions import SuggestsMethods

__all__ = ["Unfinished"]


class Unfinished(SuggestsMethods):
    """A class whose objects answer a method of `DataSet` with the call that is missing before it.

    Attributes:
        missing_call: What the program calls to get a data set.
    """

    missing_call: ClassVar[str]

    def _instead_of(self, name: str) -> str | None:
        return f"call {self.missing_call} before {name}()" if hasattr(DataSet, name) else None
