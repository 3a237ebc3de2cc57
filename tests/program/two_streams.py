"""Two small streams, and functions over both."""

from ekorn.common import Types
from ekorn.datastream import CoFlatMapFunction, CoMapFunction, CoProcessFunction, KeyedCoProcessFunction
from ekorn.datastream.state import ListStateDescriptor, ValueStateDescriptor

LEFT = [("a", 1), ("a", 2), ("b", 3), ("a", 4), ("b", 5)]
RIGHT = [("a", 10), ("b", 20), ("a", 30), ("c", 40), ("a", 50), ("a", 60)]


def first(value):
    return value[0]


def both(env, left=LEFT, right=RIGHT):
    return env.from_collection(left).connect(env.from_collection(right))


class Label(CoMapFunction):
    def map1(self, value):
        return f"number {value}" if value >= 0 else None

    def map2(self, value):
        return f"word {value}" if value else None


class Words(CoFlatMapFunction):
    def flat_map1(self, value):
        yield from value.split()

    def flat_map2(self, value):
        return None if value < 0 else [value] * value


class Sides(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield 1, value, ctx.timestamp(), ctx.timer_service().current_watermark()

    def process_element2(self, value, ctx):
        if value is None:
            return None
        return [(2, value, ctx.timestamp(), ctx.timer_service().current_watermark())]


class CountBoth(KeyedCoProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG(), 0))

    def process_element1(self, value, ctx):
        yield "left", ctx.get_current_key(), value[1], self._next()

    def process_element2(self, value, ctx):
        yield "right", ctx.get_current_key(), value[1], self._next()

    def _next(self):
        self.count.update(self.count.value() + 1)
        return self.count.value()


def last_counts(found):
    return {key: count for _, key, _, count in found}


class Seen(CoMapFunction):
    def open(self, runtime_context):
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.INT()))

    def map1(self, value):
        self.seen.add(value[1])

    def map2(self, value):
        return value[0], list(self.seen.get())
