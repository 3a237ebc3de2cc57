"""Rolling policies: decide when a file sink ends a part file and begins the next."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

__all__ = [
    "CheckpointRollingPolicy",
    "DefaultRollingPolicy",
    "OnCheckpointRollingPolicy",
    "PartFileInfo",
    "RollingPolicy",
]


class PartFileInfo(Protocol):
    """The part file being written, as a policy sees it."""

    def get_bucket_id(self) -> str:
        """Return the bucket of the file."""
        ...

    def get_creation_time(self) -> int:
        """Return the time at which the file was begun, in milliseconds."""
        ...

    def get_size(self) -> int:
        """Return the number of bytes written to the file."""
        ...

    def get_last_update_time(self) -> int:
        """Return the time at which a record was last written to the file, in milliseconds."""
        ...


class RollingPolicy(ABC):
    """Decides when a part file ends. An ended file becomes visible with the next completed checkpoint."""

    @abstractmethod
    def should_roll_on_checkpoint(self, part_file_state: PartFileInfo) -> bool:
        """Return whether to end the file because a checkpoint is being taken."""

    @abstractmethod
    def should_roll_on_event(self, part_file_state: PartFileInfo, element: Any) -> bool:
        """Return whether to end the file before this record, which then begins the next file."""

    @abstractmethod
    def should_roll_on_processing_time(self, part_file_state: PartFileInfo, current_time: int) -> bool:
        """Return whether to end the file because of the time; called at the sink's bucket check interval."""

    @staticmethod
    def default_rolling_policy(
        part_size: int = 128 * 1024 * 1024, rollover_interval: int = 60_000, inactivity_interval: int = 60_000
    ) -> DefaultRollingPolicy:
        """End files by size and by time.

        Args:
            part_size: The size in bytes above which a file ends.
            rollover_interval: The milliseconds from the beginning of a file to its end.
            inactivity_interval: The milliseconds from the last record of a file to its end.
        """
        return DefaultRollingPolicy(part_size, rollover_interval, inactivity_interval)

    @staticmethod
    def on_checkpoint_rolling_policy() -> OnCheckpointRollingPolicy:
        """End files at every checkpoint, and only then."""
        return OnCheckpointRollingPolicy()


class DefaultRollingPolicy(RollingPolicy):
    """Ends a file by its size, its age, or the time since its last record."""

    def __init__(self, part_size: int, rollover_interval: int, inactivity_interval: int) -> None:
        """Set the size in bytes and the times in milliseconds, all above 0."""
        given = {
            "part_size": part_size,
            "rollover_interval": rollover_interval,
            "inactivity_interval": inactivity_interval,
        }
        for name, value in given.items():
            if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
                raise ValueError(f"default_rolling_policy() takes whole numbers above 0, but {name} is {value!r}")
        self._part_size = part_size
        self._rollover_interval = rollover_interval
        self._inactivity_interval = inactivity_interval

    def should_roll_on_checkpoint(self, part_file_state: PartFileInfo) -> bool:
        return part_file_state.get_size() > self._part_size

    def should_roll_on_event(self, part_file_state: PartFileInfo, element: Any) -> bool:
        return part_file_state.get_size() > self._part_size

    def should_roll_on_processing_time(self, part_file_state: PartFileInfo, current_time: int) -> bool:
        return (
            current_time - part_file_state.get_creation_time() >= self._rollover_interval
            or current_time - part_file_state.get_last_update_time() >= self._inactivity_interval
        )

    def __repr__(self) -> str:
        return (
            "RollingPolicy.default_rolling_policy("
            f"{self._part_size}, {self._rollover_interval}, {self._inactivity_interval})"
        )


class CheckpointRollingPolicy(RollingPolicy):
    """Ends a file at every checkpoint, and perhaps earlier: the policies of bulk formats."""

    def should_roll_on_checkpoint(self, part_file_state: PartFileInfo) -> bool:
        return True


class OnCheckpointRollingPolicy(CheckpointRollingPolicy):
    """Ends a file at every checkpoint, and only then."""

    def should_roll_on_event(self, part_file_state: PartFileInfo, element: Any) -> bool:
        return False

    def should_roll_on_processing_time(self, part_file_state: PartFileInfo, current_time: int) -> bool:
        return False

    def __repr__(self) -> str:
        return "RollingPolicy.on_checkpoint_rolling_policy()"
