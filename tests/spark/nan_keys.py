"""Keys that hold NaN, made anew for every record, as functions that slots import."""

import dataclasses
import decimal
from typing import Any, NamedTuple

from ekorn.common import Row, Types
from ekorn.datastream import KeyedProcessFunction
from ekorn.datastream.state import ValueStateDescriptor


class Point(NamedTuple):
    x: float
    y: str


@dataclasses.dataclass(frozen=True)
class Order:
    id: float


def nan_key(number: int) -> Any:
    nan = float("inf") - float("inf")
    return [
        *(nan, (nan, 1), Row(nan, 1), Point(nan, "p"), Order(nan), decimal.Decimal("NaN"), Row(Point(nan, ""), 1)),
    ][number % 7]


class CountOfKey(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield repr(ctx.get_current_key()), count
