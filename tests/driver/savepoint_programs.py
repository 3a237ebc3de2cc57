"""Programs and helpers for the tests of savepoints and checkpoint options: scripted, in process, on a virtual clock."""

from typing import Any

from ekorn.common import Configuration, RestartStrategies, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.functions import KeyedProcessFunction
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.functions.sink_contract import TwoPhaseCommitSinkFunction
from ekorn.testing.scripted import ScriptedSource, split_evenly

COUNT = 20
EXPECTED = [(n % 2, n // 2 + 1) for n in range(COUNT)]


def environment(directory=None, restarts=0, parallelism=1, interval=10, **keys):
    """Return an environment, with checkpoints if a directory is given; `keys` are keys of `execution.checkpointing`."""
    configuration = Configuration()
    for key, value in keys.items():
        configuration.set_string(f"execution.checkpointing.{key.replace('_', '-')}", str(value).lower())
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(parallelism)
    if directory is not None:
        env.enable_checkpointing(interval)
        env.get_checkpoint_config().set_checkpoint_storage_dir(str(directory))
    env.set_restart_strategy(
        RestartStrategies.fixed_delay_restart(restarts, 0) if restarts else RestartStrategies.no_restart()
    )
    return env


def numbers(env, count=COUNT, runs=(3,), splits=1, uid="numbers"):
    """Return a stream of 0, 1, 2, ..., with a number of records in each epoch."""
    source = ScriptedSource(split_evenly(range(count), splits), runs)
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid(uid)


class Count(KeyedProcessFunction):
    """Emits each record's key with the number of records of that key so far."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield ctx.get_current_key(), self.count.value()


def counting(stream, modulus=2, uid="count"):
    return stream.key_by(lambda n: n % modulus).process(Count()).uid(uid).name("count")


class Rescale:
    """Requests another parallelism of a job, as a deed of a script."""

    def __init__(self, parallelism, **more):
        self.parallelism, self.more = parallelism, more
        self.future: Any = None

    def __call__(self, handle):
        self.handle = handle
        self.future = handle.requests.request_rescale(self.parallelism, **self.more)

    @property
    def path(self):
        return self.future.result(0)

    @property
    def error(self):
        return str(self.future.exception(0))


class Ask:
    """Requests a savepoint of a job, as a deed of a script."""

    def __init__(self, directory=None, then="go on", native=False):
        self.directory = None if directory is None else str(directory)
        self.then, self.native = then, native
        self.future: Any = None

    def __call__(self, handle):
        self.future = handle.request_savepoint(self.directory, then=self.then, native=self.native)

    @property
    def path(self):
        return self.future.result(0)

    @property
    def error(self):
        error = self.future.exception(0)
        return None if error is None else str(error)


class Ledger(TwoPhaseCommitSinkFunction):
    """A transactional sink whose committed records the test can read."""

    books = {}

    def __init__(self, name):
        self.name = name
        Ledger.books[name] = {}

    @staticmethod
    def committed(name):
        """Return the records of all committed transactions, in the order of their first commit."""
        return [record for records in Ledger.books[name].values() for record in records]

    def begin_transaction(self):
        return []

    def invoke(self, transaction, value, context):  # type: ignore[override]
        transaction.append(value)

    def pre_commit(self, transaction):
        pass

    def commit(self, transaction):
        if transaction:
            Ledger.books[self.name].setdefault(repr(transaction), list(transaction))

    def abort(self, transaction):
        pass
