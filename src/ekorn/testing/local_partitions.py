"""Runs DataSet programs over lists of this process: the planner and the tasks are those that run on Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NoReturn

from ekorn.batch.plan.operators import Plan
from ekorn.batch.planner.plan_runner import PlanResult, RunSettings, error_of_function, run_on
from ekorn.batch.planner.rdds import Task
from ekorn.errors import UnsupportedOperationError
from ekorn.testing.local_slots import InProcessSlots
from ekorn.types.data_types import RowType

__all__ = ["LocalRdd", "LocalRdds", "LocalSuperstepEngine", "run_in_process"]


def run_in_process(plan: Plan, settings: RunSettings) -> PlanResult:
    """Run all sinks of a plan in this process."""
    try:
        return run_on(LocalRdds(), LocalSuperstepEngine(), plan, settings, settings.job_id)
    except Exception as error:
        raise error_of_function(error, settings.job_name, None) or error from None


class LocalSuperstepEngine:
    """Runs iterations in this process, with slots that are threads of it."""

    def slots(self, most: int) -> InProcessSlots:
        return InProcessSlots(min(most, 2))

    def starting_slots(self) -> AbstractContextManager[None]:
        return nullcontext()

    def rdds(self, description: str) -> LocalRdds:
        return LocalRdds()


@dataclass
class LocalRdd:
    """Partitions, computed at every read; those of an RDD that is kept, at the first read."""

    partitions: list[Any] = field(default_factory=list)  # a function that returns the elements of each
    shuffled: bool = False

    def elements(self, number: int) -> Iterable[Any]:
        """Compute the elements of a partition."""
        found: Iterable[Any] = self.partitions[number]()
        return found


class LocalRdds:
    """What `SparkRdds` does, over lists.

    Args:
        memory_mb: The memory beyond which tasks use the disk; 0 lets them always do.
    """

    def __init__(self, memory_mb: int = 1 << 20) -> None:
        self.memory_mb = memory_mb
        self.shuffles = 0
        self.local = True

    def of_elements(self, partitions: Sequence[list[Any]]) -> LocalRdd:
        return LocalRdd(partitions=[lambda each=each: list(each) for each in partitions])

    def of_frame(self, frame: Any, row_type: RowType) -> NoReturn:
        raise UnsupportedOperationError("a Spark DataFrame can be read only on Spark")

    def number_of(self, rdd: LocalRdd) -> None:
        return None

    def in_order(self, rdd: LocalRdd) -> LocalRdd:
        return rdd

    def may_change(self, rdd: LocalRdd) -> bool:
        return False  # nothing is lost

    def frame(self, rdd: LocalRdd, row_type: RowType, *, copies: int) -> NoReturn:
        raise UnsupportedOperationError("to_data_frame() runs only on Spark; use collect() in this process")

    def staged(self, rdd: LocalRdd, task: Task, *, keeps_partitions: bool) -> LocalRdd:
        computed = [
            lambda number=number: list(task(number, rdd.elements(number))) for number in range(len(rdd.partitions))
        ]
        return LocalRdd(partitions=computed, shuffled=keeps_partitions and rdd.shuffled)

    def shuffled(self, rdd: LocalRdd, partitions: int) -> LocalRdd:
        self.shuffles += 1
        moved: list[list[bytes]] | None = None

        def blobs_of(number: int) -> list[bytes]:
            nonlocal moved
            if moved is None:
                moved = [[] for _ in range(partitions)]
                for source in range(len(rdd.partitions)):
                    elements = iter(rdd.elements(source))
                    for address, blob in zip(elements, elements, strict=True):
                        moved[int.from_bytes(address, "big")].append(blob)
            return moved[number]

        return LocalRdd(
            partitions=[lambda number=number: blobs_of(number) for number in range(partitions)], shuffled=True
        )

    def union(self, rdds: Sequence[LocalRdd]) -> LocalRdd:
        count = len(rdds[0].partitions)
        if all(rdd.shuffled and len(rdd.partitions) == count for rdd in rdds):
            together = [
                lambda number=number: list(chain.from_iterable(rdd.elements(number) for rdd in rdds))
                for number in range(count)
            ]
            return LocalRdd(partitions=together, shuffled=True)
        return LocalRdd(partitions=[each for rdd in rdds for each in rdd.partitions])

    def fewer(self, rdd: LocalRdd, partitions: int) -> LocalRdd:
        shares = [rdd.partitions[number::partitions] for number in range(partitions)]
        return LocalRdd(
            partitions=[lambda share=share: list(chain.from_iterable(each() for each in share)) for share in shares]
        )

    def kept(self, rdd: LocalRdd) -> LocalRdd:
        return LocalRdd(partitions=[_Once(each) for each in rdd.partitions], shuffled=rdd.shuffled)

    def collected(self, rdd: LocalRdd) -> list[bytes]:
        return [blob for number in range(len(rdd.partitions)) for blob in rdd.elements(number)]

    def broadcast(self, value: Any) -> _Shared:
        return _Shared(value)

    def release(self) -> None:
        """Nothing is kept beyond the run."""

    def drop_shuffles(self) -> None:
        """Nothing is kept beyond the run."""


class _Once:
    """Calls a function once."""

    def __init__(self, compute: Any) -> None:
        self._compute = compute
        self._found: Any = None

    def __call__(self) -> Any:
        if self._found is None:
            self._found = self._compute()
        return self._found


@dataclass(frozen=True)
class _Shared:
    value: Any
