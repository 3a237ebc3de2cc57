"""Jobs with queryable state of every kind, and clients that ask them."""

import contextlib
import threading

from ekorn.common import Configuration, RestartStrategies, Time, Types, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.functions import AggregateFunction, KeyedProcessFunction
from ekorn.datastream.state import (
    AggregatingStateDescriptor,
    FoldingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from ekorn.queryable import QueryableStateClient
from ekorn.testing.scripted import Script, ScriptedSource, split_evenly, start_scripted

DAY = StateTtlConfig.new_builder(Time.days(1)).build()


class Average(AggregateFunction):
    def create_accumulator(self):
        return [0, 0]

    def add(self, value, accumulator):
        return [accumulator[0] + value, accumulator[1] + 1]

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, a, b):
        return [a[0] + b[0], a[1] + b[1]]


def descriptors():
    """Return a descriptor of each kind of keyed state, with and without a time to live, by its queryable name."""
    plain = {
        "value": ValueStateDescriptor("v", Types.LONG()),
        "pickled": ValueStateDescriptor("p"),
        "list": ListStateDescriptor("l", Types.LONG()),
        "map": MapStateDescriptor("m", Types.STRING(), Types.LONG()),
        "reducing": ReducingStateDescriptor("r", max, Types.LONG()),
        "aggregating": AggregatingStateDescriptor("a", Average()),
        "folding": FoldingStateDescriptor("f", "", lambda so_far, n: f"{so_far}+{n}", Types.STRING()),
    }
    expiring = {
        "ttl value": ValueStateDescriptor("tv", Types.LONG()),
        "ttl list": ListStateDescriptor("tl", Types.LONG()),
        "ttl map": MapStateDescriptor("tm", Types.STRING(), Types.LONG()),
    }
    for descriptor in expiring.values():
        descriptor.enable_time_to_live(DAY)
    for name, descriptor in (both := plain | expiring).items():
        descriptor.set_queryable(name)
    return both


class EveryKind(KeyedProcessFunction):
    """Writes each record into states of every kind."""

    def open(self, runtime_context):
        d = descriptors()
        self.value = runtime_context.get_state(d["value"])
        self.pickled = runtime_context.get_state(d["pickled"])
        self.list = runtime_context.get_list_state(d["list"])
        self.map = runtime_context.get_map_state(d["map"])
        self.reducing = runtime_context.get_reducing_state(d["reducing"])
        self.aggregating = runtime_context.get_aggregating_state(d["aggregating"])
        self.folding = runtime_context.get_folding_state(d["folding"])
        self.ttl_value = runtime_context.get_state(d["ttl value"])
        self.ttl_list = runtime_context.get_list_state(d["ttl list"])
        self.ttl_map = runtime_context.get_map_state(d["ttl map"])

    def process_element(self, value, ctx):
        self.value.update(value)
        self.pickled.update({"n": [value]})
        self.list.add(value)
        self.map.put_all({str(value): value, "last": value})
        self.reducing.add(value)
        self.aggregating.add(value)
        self.folding.add(value)
        self.ttl_value.update(value)
        self.ttl_list.add(value)
        self.ttl_map.put("last", value)
        return iter(())


def expected(numbers):
    """Return what the states of a key hold after some records."""
    return {
        "value": numbers[-1],
        "pickled": {"n": [numbers[-1]]},
        "list": numbers,
        "map": {str(n): n for n in numbers} | {"last": numbers[-1]},
        "reducing": max(numbers),
        "aggregating": sum(numbers) / len(numbers),
        "folding": "".join(f"+{n}" for n in numbers),
        "ttl value": numbers[-1],
        "ttl list": numbers,
        "ttl map": {"last": numbers[-1]},
    }


def content(state):
    """Return what a queried state holds."""
    if hasattr(state, "value"):
        return state.value()
    if hasattr(state, "items"):
        return dict(state.items())
    found = state.get()
    return list(found) if hasattr(found, "__next__") else found


def environment(parallelism=1, directory=None, **keys):
    configuration = Configuration()
    configuration.set_string("queryable-state.enable", "true")
    configuration.set_string("queryable-state.proxy.ports", "0")
    for key, value in keys.items():
        configuration.set_string(key.replace("__", "."), value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(parallelism).set_max_parallelism(16)
    if directory is not None:
        env.enable_checkpointing(10)
        env.get_checkpoint_config().set_checkpoint_storage_dir(str(directory))
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 0))
    return env


def numbers(env, count=40, run=4, splits=1):
    source = ScriptedSource(split_evenly(range(count), splits), [run])
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")


@contextlib.contextmanager
def client_of(handle):
    """Yield a client of a job and the job's id."""
    at = handle.queries_at
    with QueryableStateClient(at.host, at.port, at.token) as client:
        yield client, handle.job_id


class Asked:
    """Asks a scripted job between two epochs, on a thread of its own as a client would; keeps the answer."""

    def __init__(self, question):
        self._question = question
        self.answer = None

    def __call__(self, handle):
        def ask():
            with client_of(handle) as (client, job):
                try:
                    self.answer = self._question(client, job)
                except Exception as error:
                    self.answer = error

        thread = threading.Thread(target=ask)
        thread.start()
        thread.join(120)


def asked_after(epoch, stream, question, **settings):
    """Run a job, and ask it after an epoch; return the answer."""
    asked = Asked(question)
    turns = settings.pop("turns", None)
    crashes = settings.pop("crashes", ())
    script = settings.pop("script", {})
    run = start_scripted(stream, Script(deeds={epoch: asked}, turns=turns, crashes=crashes, **script), **settings)
    run.handle.wait(30)
    if isinstance(asked.answer, Exception):
        raise asked.answer
    return asked.answer
