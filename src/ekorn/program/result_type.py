"""`ResultTypeQueryable`: a class that knows the type of the records it produces."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ekorn.types.type_information import TypeInformation

__all__ = ["ResultTypeQueryable"]


class ResultTypeQueryable(ABC):
    """A source or a schema that knows the type of its records."""

    @abstractmethod
    def get_produced_type(self) -> TypeInformation:
        """Return the type of the records."""
