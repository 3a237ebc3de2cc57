"""Requests about resident tables: plain values, pickled, each answered by one message.

A table is cut into partitions by key. Spark's tasks write and read partitions; the driver says what counts.

* Every request names an attempt of the iteration and the number of commits in it (`Fence`). A slot refuses a request
  of another attempt or commit: a task that Spark gave up cannot read or write a later superstep.
* A task writes under a token of its own. The driver learns the tokens from the tasks that Spark counted, and names
  them in `CommitTables`. What other tasks wrote, such as repeated and speculative ones, is dropped.
* A write takes effect with the commit. Until then all tasks read what the last commit left.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class TableKind(Enum):
    """What a table keeps of the elements that are written to it."""

    SOLUTION = "solution"  # the last element of each key; later writes replace elements by key
    INDEX = "index"  # all elements of each key
    BAG = "bag"  # elements without keys; each write replaces those before


class TablePartition(NamedTuple):
    """One partition of one table of an iteration."""

    table: int
    partition: int


class Fence(NamedTuple):
    """What a request may see: an attempt of the iteration, and the number of commits in the attempt."""

    attempt: int
    commits: int


class NamedWrite(NamedTuple):
    """What one task wrote to a partition."""

    target: TablePartition
    token: str


@dataclass(frozen=True, slots=True)
class BeginTables:
    """From the driver: an attempt of the iteration begins. All tables are empty."""

    attempt: int
    kinds: tuple[TableKind, ...]  # by the number of the table
    memory_bytes: int  # for writes and bags; what exceeds it goes to the slot's disk


@dataclass(frozen=True, slots=True)
class CommitTables:
    """From the driver: these writes take effect; others are dropped."""

    fence: Fence
    writes: tuple[NamedWrite, ...]


@dataclass(frozen=True, slots=True)
class WriteTable:
    """From a task: one part of a write. The part is a pickle, as `partitions.py` reads it."""

    fence: Fence
    write: NamedWrite
    part: bytes


@dataclass(frozen=True, slots=True)
class LookUp:
    """From a task: return what a partition keeps for each of these keys, a pickled list of them."""

    fence: Fence
    target: TablePartition
    keys: bytes


@dataclass(frozen=True, slots=True)
class ReadTable:
    """From a task: return one part of all elements of a partition. After the last part the answer is empty."""

    fence: Fence
    target: TablePartition
    number: int


TableRequest = BeginTables | CommitTables | WriteTable | LookUp | ReadTable
