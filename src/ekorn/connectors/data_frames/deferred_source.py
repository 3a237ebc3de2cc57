"""`DeferredSource`: stands in a drawn program for a source whose input is made when the job is submitted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from ekorn.errors import InvalidProgramError
from ekorn.functions.source_contract import Boundedness, Source, Split
from ekorn.types.type_information import TypeInformation

__all__ = ["DeferredSource"]


class DeferredSource(Source):
    """A placeholder with a token. `StreamExecutionEnvironment` replaces it with the real source at every submission."""

    def __init__(self, token: str, what: str, produced_type: TypeInformation, boundedness: Boundedness) -> None:
        self.token = token
        self._what = what
        self._produced_type = produced_type
        self._boundedness = boundedness

    @property
    def boundedness(self) -> Boundedness:
        """Return whether the real source ends."""
        return self._boundedness

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the rows."""
        return self._produced_type

    def discover_splits(self, parallelism: int) -> Sequence[Split]:
        """Refuse: the job was not submitted by its environment."""
        self._refuse()

    def create_reader(self, split: Split, position: Any | None) -> NoReturn:
        """Refuse: the job was not submitted by its environment."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise InvalidProgramError(f"{self._what} has no rows yet: run the job with execute() of its environment")

    def __repr__(self) -> str:
        return self._what
