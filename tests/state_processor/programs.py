"""Programs with every kind of state, and the savepoints that the tests of the state processor read."""

import shutil

from ekorn.common import Time, Types, WatermarkStrategy
from ekorn.datastream.functions import AggregateFunction, KeyedProcessFunction, MapFunction, ReduceFunction
from ekorn.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from ekorn.functions.state.checkpointed import CheckpointedFunction
from ekorn.testing.scripted import Script, ScriptedSource, run_scripted, split_evenly
from tests.driver.savepoint_programs import Ask, environment

COUNT = 40
KEYS = 5
FAR_MS = 10**15  # never reached


class Average(AggregateFunction):
    def create_accumulator(self):
        return (0, 0)

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Larger(ReduceFunction):
    def reduce(self, value1, value2):
        return max(value1, value2)


def descriptors():
    """Return one descriptor of each kind of keyed state."""
    ttl = ValueStateDescriptor("ttl", Types.LONG())
    ttl.enable_time_to_live(StateTtlConfig.new_builder(Time.days(100_000)).build())  # scripted jobs run in 1970
    return {
        "value": ValueStateDescriptor("value", Types.LONG()),
        "list": ListStateDescriptor("list", Types.LONG()),
        "map": MapStateDescriptor("map", Types.STRING(), Types.LONG()),
        "reducing": ReducingStateDescriptor("reducing", Larger(), Types.LONG()),
        "aggregating": AggregatingStateDescriptor("aggregating", Average()),
        "ttl": ttl,
        "rare": ValueStateDescriptor("rare"),
    }


def state_of(context):
    """Register one state of each kind."""
    d = descriptors()
    return (
        context.get_state(d["value"]),
        context.get_list_state(d["list"]),
        context.get_map_state(d["map"]),
        context.get_reducing_state(d["reducing"]),
        context.get_aggregating_state(d["aggregating"]),
        context.get_state(d["ttl"]),
    )


def put_into(states, value, ctx):
    """Put a record into a state of every kind, and register timers."""
    one, many, entries, largest, average, fresh = states
    one.update((one.value() or 0) + value)
    many.add(value)
    entries.put(str(value), value)
    largest.add(value)
    average.add(value)
    fresh.update(value)
    ctx.timer_service().register_event_time_timer(FAR_MS + value)
    if value == KEYS:
        ctx.timer_service().register_processing_time_timer(FAR_MS)


class EveryKind(KeyedProcessFunction):
    """Puts each record into a state of every kind; key 3 alone has the state `rare`."""

    def open(self, runtime_context):
        self.states = state_of(runtime_context)
        self.rare = runtime_context.get_state(descriptors()["rare"])

    def process_element(self, value, ctx):
        put_into(self.states, value, ctx)
        if ctx.get_current_key() == 3:
            self.rare.update({"seen": value})
        yield told(ctx.get_current_key(), self.states)


def told(key, states):
    """Return everything that the states of a key hold, as a record."""
    one, many, entries, largest, average, fresh = states
    return (
        key,
        one.value(),
        tuple(many.get()),
        tuple(sorted(entries.items())),
        largest.get(),
        average.get(),
        fresh.value(),
    )


class Positions(MapFunction, CheckpointedFunction):
    """Keeps the records it saw in a list, in a union list and in a broadcast map."""

    def initialize_state(self, context):
        store = context.get_operator_state_store()
        self.seen = store.get_list_state(ListStateDescriptor("seen", Types.LONG()))
        self.all = store.get_union_list_state(ListStateDescriptor("all"))
        self.rules = store.get_broadcast_state(MapStateDescriptor("rules", Types.STRING(), Types.LONG()))

    def snapshot_state(self, context):
        pass

    def map(self, value):
        self.seen.add(value)
        self.all.add((value, "seen"))
        self.rules.put("limit", 7)
        return value


def numbers(env, given=range(COUNT), splits=2):
    source = ScriptedSource(split_evenly(given, splits), (3,))
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")


def every_kind(env, given=range(COUNT)):
    """Return the program with every kind of keyed state and of operator state."""
    keyed = numbers(env, given).map(Positions(), Types.LONG()).uid("positions").key_by(lambda n: n % KEYS)
    return keyed.process(EveryKind()).uid("every-kind").name("every kind")


def savepoint_of(program, tmp_path, *, backend="hashmap", native=False, parallelism=2, after=3, then="go on"):
    """Run a program and return the path of the savepoint that is taken after some epochs."""
    ask = Ask(tmp_path / "savepoints", native=native, then=then)
    stream = program(environment(tmp_path / "checkpoints", parallelism=parallelism, data_inline_threshold=0))
    run_scripted(stream, Script(deeds={after: ask}), state_backend=backend)
    return ask.path


def checkpoint_of(program, tmp_path, *, backend="hashmap", after=7):
    """Run a program and return the path of an incremental checkpoint, in a copy of the directory after some epochs."""
    checkpoints, copy = tmp_path / "checkpoints", tmp_path / "copy"
    stream = program(environment(checkpoints, parallelism=2, data_inline_threshold=0))
    deeds = {after: lambda handle: shutil.copytree(checkpoints, copy)}
    run_scripted(stream, Script(checkpoints=[True], deeds=deeds), state_backend=backend)
    (job,) = copy.iterdir()
    completed = [path.parent for path in job.glob("chk-*/_metadata")]
    return str(max(completed, key=lambda path: int(path.name.removeprefix("chk-"))))


def restored(program, path, tmp_path, *, backend="hashmap", parallelism=2, **more):
    """Run a program from a savepoint and return its records."""
    stream = program(environment(tmp_path / "restored", parallelism=parallelism))
    return run_scripted(stream, restore_path=path, state_backend=backend, **more).records
