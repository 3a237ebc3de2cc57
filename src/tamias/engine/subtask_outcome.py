"""The outcome of one subtask's epoch, as it travels from the task that ran it to the driver."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

from tamias.graph.addresses import SubtaskId


@dataclass(frozen=True, slots=True)
class SubtaskOutcome:
    """A slot's last word on an epoch: a pickled `Ack` if it succeeded, a pickled exception if it failed."""

    succeeded: bool
    pickled: bytes


@dataclass(frozen=True, slots=True)
class SubtaskFailure:
    """The failed epoch of one subtask. The error stays pickled: only the driver may know its class."""

    subtask: SubtaskId
    pickled_error: bytes

    @property
    def error(self) -> BaseException:
        """Unpickle the exception that was raised."""
        error: BaseException = pickle.loads(self.pickled_error)
        return error
