"""`SlotSharingGroup`: operators that may share slots, and the resources of such a slot."""

from ekorn.program.streams.slot_sharing_group import MemorySize, SlotSharingGroup

__all__ = ["MemorySize", "SlotSharingGroup"]
