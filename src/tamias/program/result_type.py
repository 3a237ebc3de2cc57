"""What PyFlink keeps under this name and programs use."""

from __future__ import annotations

from abc import ABC, abstractmethod

from tamias.types.type_information import TypeInformation

__all__ = ["ResultTypeQueryable"]


class ResultTypeQueryable(ABC):
    """A source, or a schema, that knows the type of its records."""

    @abstractmethod
    def get_produced_type(self) -> TypeInformation:
        """Type of the records."""
