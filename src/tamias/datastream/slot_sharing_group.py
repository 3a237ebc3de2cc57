"""Slot-sharing groups: operators that may share slots, and what such a slot asks for."""

from tamias.program.slot_sharing_group import MemorySize, SlotSharingGroup

__all__ = ["MemorySize", "SlotSharingGroup"]
