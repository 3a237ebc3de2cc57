"""Asks slots to read state in advance, all at the same time."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from ekorn.engine.slots.slot_handle import SlotHandle
from ekorn.slot_protocol.deployment_codec import encode_classes
from ekorn.slot_protocol.messages import Preload
from ekorn.slot_protocol.preload_plan import PreloadPlan

__all__ = ["drop_preloaded", "preload"]

_log = logging.getLogger(__name__)
_PRELOAD_S = 600.0  # a slot that takes longer reads its state when it is deployed
_DROP_S = 10.0
_MOST_THREADS = 64


def preload(slots: Sequence[SlotHandle], plans: dict[int, PreloadPlan]) -> None:
    """Let slots read state; return when all have done so, or have failed to."""
    _ask({slot: plans[slot.number] for slot in slots if plans[slot.number].operators}, _PRELOAD_S)


def drop_preloaded(slots: Sequence[SlotHandle]) -> None:
    """Let slots drop what they have read in advance."""
    _ask(dict.fromkeys(slots, PreloadPlan()), _DROP_S)


def _ask(plans: dict[SlotHandle, PreloadPlan], timeout_s: float) -> None:
    if not plans:
        return
    classes = encode_classes()
    with ThreadPoolExecutor(min(len(plans), _MOST_THREADS), thread_name_prefix="ekorn-preload") as threads:
        asked = {slot: threads.submit(slot.preload, Preload(classes, plan), timeout_s) for slot, plan in plans.items()}
    for slot, answer in asked.items():
        error = answer.exception() or answer.result()
        if error is not None:
            _log.info("slot %d reads its state when it is deployed, not in advance: %s", slot.number, error)
