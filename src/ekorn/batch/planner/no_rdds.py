"""The seam to Spark without Spark: translates a plan to see how it would run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ekorn.batch.planner.rdds import Task
from ekorn.types.data_types import RowType

__all__ = ["NoRdds"]


class NoRdds:
    """RDDs without partitions."""

    memory_mb = 0
    local = True

    def of_elements(self, partitions: Sequence[list[Any]]) -> None:
        return None

    def of_frame(self, frame: Any, row_type: RowType) -> tuple[None, int]:
        return None, frame.rdd.getNumPartitions()

    def frame(self, rdd: Any, row_type: RowType, *, copies: int) -> None:
        return None

    def in_order(self, rdd: Any) -> None:
        return None

    def may_change(self, rdd: Any) -> bool:
        return False

    def staged(self, rdd: Any, task: Task, *, keeps_partitions: bool) -> None:
        return None

    def shuffled(self, rdd: Any, partitions: int) -> None:
        return None

    def union(self, rdds: Sequence[Any]) -> None:
        return None

    def fewer(self, rdd: Any, partitions: int) -> None:
        return None

    def kept(self, rdd: Any) -> None:
        return None

    def collected(self, rdd: Any) -> list[bytes]:
        return []

    def broadcast(self, value: Any) -> None:
        return None

    def release(self) -> None:
        pass

    def drop_shuffles(self) -> None:
        pass
