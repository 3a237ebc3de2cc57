"""Addresses inside a job: of a subtask, of an input channel of a subtask, and of an operator in its chain."""

from __future__ import annotations

from typing import NamedTuple


class SubtaskId(NamedTuple):
    """One parallel instance of a vertex."""

    vertex: int
    subtask: int


class ChannelId(NamedTuple):
    """One input channel of a subtask: the exchange it belongs to, and the subtask index of the sender."""

    exchange: int
    sender: int


class ChainPosition(NamedTuple):
    """One operator of a vertex, by its position in the chain."""

    vertex: int
    position: int
