"""One program of keyed state, three times: as a function of rows, by the vector, and key by key."""

import numpy as np
import pyarrow as pa

from ekorn.common import Row, Types
from ekorn.datastream import AggregateFunction, KeyedProcessFunction, OutputTag
from ekorn.datastream.columns import KeyedBatchFunction
from ekorn.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)

VISIT = Types.ROW_NAMED(["k", "v"], [Types.STRING(), Types.LONG()])
SEEN = Types.ROW_NAMED(
    ["k", "what", "a", "b", "text"], [Types.STRING(), Types.STRING(), Types.LONG(), Types.LONG(), Types.STRING()]
)
BIG = OutputTag("big", VISIT)
GAP = 10


class Mean(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]


class States:
    """The states of all three; each function has them under the same names."""

    def open(self, context):
        self.total = context.get_state(ValueStateDescriptor("total", Types.LONG(), 0))
        self.timer = context.get_state(ValueStateDescriptor("timer", Types.LONG()))
        self.name = context.get_state(ValueStateDescriptor("name", Types.STRING()))
        self.visits = context.get_list_state(ListStateDescriptor("visits", Types.LONG()))
        self.counts = context.get_map_state(MapStateDescriptor("counts", Types.LONG(), Types.LONG()))
        self.largest = context.get_reducing_state(ReducingStateDescriptor("largest", max, Types.LONG()))
        self.mean = context.get_aggregating_state(
            AggregatingStateDescriptor("mean", Mean(), Types.TUPLE([Types.LONG(), Types.LONG()]))
        )


def summary(total, visits, counts, *more):
    return f"{total} {list(visits)} {sorted(dict(counts).items())} {more}"


class ByRow(States, KeyedProcessFunction):
    """Counts the visits of a session; a timer ends it."""

    def process_element(self, value, ctx):
        yield from self.take(value, ctx.timestamp(), self, ctx.timer_service())
        if value.v > 40:
            ctx.output(BIG, value)

    @staticmethod
    def take(value, time, states, timers):
        total = states.total.value() + value.v
        states.total.update(total)
        states.visits.add(value.v)
        states.counts.put(value.v % 3, (states.counts.get(value.v % 3) or 0) + 1)
        states.largest.add(value.v)
        states.mean.add(value.v)
        states.name.update(f"name {value.v}")
        if states.timer.value() is not None:
            timers.delete_event_time_timer(states.timer.value())
        timers.register_event_time_timer(time + GAP)
        states.timer.update(time + GAP)
        timers.register_processing_time_timer(1_000 + value.v % 2)
        yield Row(k=value.k, what="row", a=total, b=len(list(states.visits.get())), text=None)

    def on_timer(self, timestamp, ctx):
        yield self.end(ctx.get_current_key()[0], timestamp, self, ctx.time_domain().name)

    @staticmethod
    def end(key, timestamp, states, domain):
        text = summary(
            states.total.value(),
            states.visits.get(),
            states.counts.items(),
            states.largest.get(),
            states.mean.get(),
            states.name.value(),
        )
        if domain == "EVENT_TIME":
            for state in (states.total, states.timer, states.visits, states.counts, states.largest, states.mean):
                state.clear()
        return Row(k=key, what=domain, a=timestamp, b=None, text=text)


def results(keys, what, a, b, text):
    schema = [("k", pa.string()), ("what", pa.string()), ("a", pa.int64()), ("b", pa.int64()), ("text", pa.string())]
    columns = [keys, pa.array([what] * len(keys)), pa.array(a), pa.array(b, pa.int64()), pa.array(text, pa.string())]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(schema))


class ByVector(States, KeyedBatchFunction):
    """The same by the vector."""

    def process_batch(self, batch, ctx):
        running = ctx.running_sum("v", start=self.total.values())
        lengths = ctx.running_count(start=self.visits.lengths())
        self.total.update(ctx.last(running))
        values = batch.column("v")
        self.visits.add(values)
        thirds = values.to_numpy() % 3
        for third in range(3):
            mine = thirds == third
            counts = self.counts.get(np.full(len(mine), third), fill=0) + ctx.running_sum(mine)
            self.counts.put(thirds, counts, where=mine)
        self.largest.add(values)
        self.mean.add(values)
        self.name.update(np.array([f"name {v}" for v in ctx.last("v").to_pylist()], dtype=object))
        ctx.delete_event_time_timers(self.timer.values(fill=0), where=self.timer.present())
        ends = ctx.last(ctx.timestamps()) + GAP
        ctx.register_event_time_timers(ends)
        self.timer.update(ends)
        for odd in range(2):
            ctx.register_processing_time_timers(1_000 + odd, where=ctx.sum(values.to_numpy() % 2 == odd) > 0)
        big = values.to_numpy() > 40
        yield BIG, ctx.of_rows(batch.filter(pa.array(big)), big)
        yield results(batch.column("k"), "row", running, lengths, [None] * len(batch))

    def on_timers(self, keys, timestamps, ctx):
        positions, map_keys, map_values = self.counts.entries()
        counts = [{} for _ in range(ctx.key_count)]
        for at, key, value in zip(positions.tolist(), map_keys, map_values, strict=True):
            counts[at][key] = value
        parts = zip(
            self.total.values().tolist(),
            self.visits.lists().to_pylist(),
            counts,
            self.largest.values(),
            self.mean.values(),
            self.name.values(),
            strict=True,
        )
        texts = [summary(*each) for each in parts]
        yield results(keys.column("k"), ctx.time_domain().name, timestamps, [None] * len(texts), texts)
        if ctx.time_domain().name == "EVENT_TIME":
            for state in (self.total, self.timer, self.visits, self.counts, self.largest, self.mean):
                state.clear()


class OneKey:
    """The states of one key, and its timers."""

    def __init__(self, function, key):
        self.__dict__.update({name: key.state(state) for name, state in vars(function).items() if name[0] != "_"})


class ByKey(States, KeyedBatchFunction):
    """The same key by key."""

    def process_batch(self, batch, ctx):
        for key in ctx.per_key():
            states = OneKey(self, key)
            for row, time, at in zip(key.rows(), key.timestamps(), key.positions().tolist(), strict=True):
                for result in ByRow.take(row, time, states, key):
                    one = results(pa.array([result.k]), "row", [result.a], [result.b], [None])
                    yield ctx.of_rows(one, [at])
                if row.v > 40:
                    ctx.output(BIG, ctx.of_rows(batch.slice(at, 1), [at]))

    def on_timers(self, keys, timestamps, ctx):
        for at, key in enumerate(ctx.per_key()):
            end = ByRow.end(key.get_current_key()[0], int(timestamps[at]), OneKey(self, key), ctx.time_domain().name)
            yield ctx.of_rows(results(pa.array([end.k]), end.what, [end.a], [None], [end.text]), [at])


FORMS = {"row": ByRow, "vector": ByVector, "key": ByKey}
