"""Functions that read and write the savepoints of `programs.every_kind`."""

from ekorn.datastream import StreamExecutionEnvironment
from ekorn.state_processor import KeyedStateBootstrapFunction, KeyedStateReaderFunction
from tests.state_processor.programs import COUNT, descriptors, put_into, state_of, told

EARLIER, LATER = range(COUNT // 2), range(COUNT // 2, COUNT)


class ReadEverything(KeyedStateReaderFunction):
    def open(self, runtime_context):
        self.states = state_of(runtime_context)

    def read_key(self, key, ctx):
        yield told(key, self.states)


class ReadTimers(KeyedStateReaderFunction):
    def open(self, runtime_context):
        runtime_context.get_state(descriptors()["value"])

    def read_key(self, key, ctx):
        yield key, ctx.registered_event_time_timers(), ctx.registered_processing_time_timers()


class FillEveryKind(KeyedStateBootstrapFunction):
    """Does with the records of the past what `EveryKind` does."""

    def open(self, runtime_context):
        self.states = state_of(runtime_context)
        self.rare = runtime_context.get_state(descriptors()["rare"])

    def process_element(self, value, ctx):
        put_into(self.states, value, ctx)


def env(parallelism=2):
    found = StreamExecutionEnvironment.get_execution_environment()
    found.set_parallelism(parallelism)
    return found


def by_key(records):
    assert len({record[0] for record in records}) == len(records), "each key once"
    return {record[0]: record[1:] for record in records}


def last_by_key(records):
    return {record[0]: (record[1], sorted(record[2]), *record[3:6]) for record in records}
