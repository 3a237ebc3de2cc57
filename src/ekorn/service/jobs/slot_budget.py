"""Decides which jobs may start, from the slots and memory that they claim and what is free; and what slots may use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ekorn.config.options.memory import MEMORY_PROCESS_SIZE, TASK_SLOTS
from ekorn.service.jobs.job_record import JobRecord

__all__ = ["SlotBudget"]


@dataclass(frozen=True)
class SlotBudget:
    """The resources that the jobs of a service share.

    Attributes:
        slots: The slots.
        memory_bytes: The memory; None for any.
    """

    slots: int
    memory_bytes: int | None = None

    def refusal(self, job: JobRecord) -> str | None:
        """Return why a job could never start here, or None."""
        if job.slots > self.slots:
            return f"it needs {_slots(job)}, but the service has only {self.slots} (taskmanager.numberOfTaskSlots)"
        if self.memory_bytes is not None and _memory(job) > self.memory_bytes:
            return (
                f"it claims {_memory(job)} bytes of memory, but the service has only {self.memory_bytes} "
                "(taskmanager.memory.process.size)"
            )
        return None

    def settings_of_slots(self, job: JobRecord) -> dict[str, str]:
        """Return the settings by which the slots of a job may use equal shares of the memory.

        Nothing for a job that claims memory, or whose own settings say what its slots may use.
        """
        own = any(key.startswith("taskmanager.memory.") or key == TASK_SLOTS.key for key in job.settings)
        if own or self.memory_bytes is None or job.slot_memory_bytes:
            return {}
        return {MEMORY_PROCESS_SIZE.key: f"{self.memory_bytes} b", TASK_SLOTS.key: str(self.slots)}

    def obstacle(self, job: JobRecord, started: Iterable[JobRecord]) -> str | None:
        """Return why a job cannot start now beside the jobs that have started, or None."""
        taken = list(started)
        free = self.slots - sum(each.slots for each in taken)
        if job.slots > free:
            return f"it needs {_slots(job)}, but only {max(free, 0)} of {self.slots} are free"
        if self.memory_bytes is not None:
            left = self.memory_bytes - sum(map(_memory, taken))
            if _memory(job) > left:
                return (
                    f"it claims {_memory(job)} bytes of memory, but only {max(left, 0)} of {self.memory_bytes} are free"
                )
        return None


def _slots(job: JobRecord) -> str:
    return f"{job.slots} slot" if job.slots == 1 else f"{job.slots} slots"


def _memory(job: JobRecord) -> int:
    return job.slots * job.slot_memory_bytes
