"""Where a job keeps its working state."""

from __future__ import annotations

from abc import ABC, abstractmethod

__all__ = ["HashMapStateBackend", "StateBackend"]


class StateBackend(ABC):
    """A place for working state. What a checkpoint stores, and where, is set with the checkpoint config."""

    @property
    @abstractmethod
    def backend_name(self) -> str:
        """The name it has in the configuration, under ``state.backend.type``."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class HashMapStateBackend(StateBackend):
    """State as Python objects in the slots' memory: the fastest, as large as memory allows. The default."""

    @property
    def backend_name(self) -> str:
        """``hashmap``."""
        return "hashmap"
