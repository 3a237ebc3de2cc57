"""Mistakes that users make are reported by name where they were made, before anything runs."""

from __future__ import annotations

import socket
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ekorn.common import Configuration, Time, Types, WatermarkStrategy
from ekorn.datastream import KeyedProcessFunction, MapFunction, OutputTag, ReduceFunction, StreamExecutionEnvironment
from ekorn.datastream.connectors.file_system import FileSink
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.datastream.window import TumblingEventTimeWindows
from ekorn.errors import EkornError
from ekorn.testing.local_run import on_local_engine

RAN: list[Any] = []


class Session:
    """Stands in for a SparkSession, which has a connection of its own and refuses to be pickled."""

    def __init__(self) -> None:
        self.connection = socket.socket()

    def sql(self, text: str) -> str:
        return text

    def __getstate__(self) -> Any:
        raise RuntimeError("the session belongs to the driver: it cannot be used in a function that runs elsewhere")

    def close(self) -> None:
        self.connection.close()


class WithLock(MapFunction):
    def __init__(self) -> None:
        self.guard = threading.Lock()

    def map(self, value):
        return value


class WithDatabase(KeyedProcessFunction):
    def __init__(self, database: sqlite3.Connection) -> None:
        self.settings = {"database": database}

    def process_element(self, value, ctx):
        yield value


class Total(ReduceFunction):
    def reduce(self, value1, value2):
        return value1 + value2


class Unkeyed(MapFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def map(self, value):
        return value


session, database, log = Session(), sqlite3.connect(":memory:"), open(__file__, "rb")  # noqa: SIM115 - what users have around


@pytest.fixture(scope="module", autouse=True)
def closed() -> Any:
    yield
    session.close()
    database.close()
    log.close()


def stream(env: StreamExecutionEnvironment) -> Any:
    return env.from_collection([1, 2, 3], Types.LONG()).map(RAN.append)


def with_capture(env: StreamExecutionEnvironment) -> None:
    generator = (n for n in range(3))
    stream(env).map(lambda n: next(generator))


def over_a_stream(env: StreamExecutionEnvironment) -> None:
    another = stream(env)
    stream(env).map(lambda n: another)


def wrong_setting(env: StreamExecutionEnvironment) -> None:
    stream(env).print()
    env.configure(Configuration().set_string("execution.checkpointing.interval", "soon"))
    env.execute()


def unknown_restore_path(env: StreamExecutionEnvironment) -> None:
    stream(env).print()
    env.set_restore_path("/nowhere/chk-7")
    env.execute()


def one_uid_twice(env: StreamExecutionEnvironment) -> None:
    stream(env).map(lambda n: n).uid("mine").map(lambda n: n).uid("mine").print()
    env.execute()


def window(env: StreamExecutionEnvironment) -> Any:
    return stream(env).key_by(lambda n: n).window(TumblingEventTimeWindows.of(Time.seconds(1)))


Mistake = Callable[[StreamExecutionEnvironment], Any]
MISTAKES: dict[str, tuple[Mistake, str]] = {
    "a lambda over a SparkSession": (lambda env: stream(env).map(lambda n: session.sql(f"select {n}")), "'session"),
    "a lambda over a database": (lambda env: stream(env).map(lambda n: database.execute("select 1")), "'database'"),
    "a lambda over an open file": (lambda env: stream(env).filter(lambda n: log.readable()), "'log'"),
    "a lambda over a generator": (with_capture, "'generator'"),
    "a lambda over the environment": (lambda env: stream(env).map(lambda n: env.get_parallelism()), "env"),
    "a lambda over a stream": (over_a_stream, "'another'"),
    "a lock in a function object": (lambda env: stream(env).map(WithLock()), "guard"),
    "a database inside a dictionary of a function object": (
        lambda env: stream(env).key_by(lambda n: n).process(WithDatabase(database)), "database"),
    "records that cannot be pickled": (lambda env: env.from_collection([1, threading.Lock()]), "lock"),
    "a class instead of an object": (lambda env: stream(env).map(WithLock), r"WithLock\(\.\.\.\)"),
    "a function of another kind": (lambda env: stream(env).map(Total()), "Total, a ReduceFunction"),
    "too many arguments": (lambda env: stream(env).map(lambda a, b: a), "1 argument"),
    "no function at all": (lambda env: stream(env).filter(True), "True"),
    "a generator where one result is taken": (lambda env: stream(env).map(lambda n: (yield n)), "yields"),
    "a coroutine": (lambda env: stream(env).map(asking), "coroutine"),
    "an output type that is none": (lambda env: stream(env).map(lambda n: n, output_type=int), "int"),
    "a parallelism of nothing": (lambda env: stream(env).set_parallelism(0), "0"),
    "a reduce without keys": (lambda env: stream(env).reduce(lambda a, b: a), "reduce"),
    "a window of no length": (lambda env: TumblingEventTimeWindows.of(Time.seconds(0)), "size"),
    "lateness below zero": (lambda env: window(env).allowed_lateness(-1), "-1"),
    "a trigger that is none": (lambda env: window(env).trigger("count"), "'count'"),
    "a side output without a name": (lambda env: OutputTag("", Types.LONG()), "OutputTag needs an id"),
    "a sink without a path": (lambda env: FileSink.for_row_format("", None), "path"),  # type: ignore[arg-type]
    "a source that is none": (
        lambda env: env.from_source([1, 2], WatermarkStrategy.no_watermarks(), "numbers"), "needs a Source"),  # type: ignore[arg-type]
    "a setting that cannot be read": (wrong_setting, r"execution\.checkpointing\.interval"),
    "a savepoint that is not there": (unknown_restore_path, "/nowhere/chk-7"),
    "one uid for two operators": (one_uid_twice, "'mine'"),
}  # fmt: skip


async def asking(value: int) -> int:
    return value


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_reported_before_anything_runs(name: str) -> None:
    RAN.clear()
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    mistake, words = MISTAKES[name]
    with on_local_engine(), pytest.raises((EkornError, TypeError, ValueError, AttributeError), match=words):
        mistake(env)
    assert RAN == []


def test_at_least_twenty_mistakes_are_tried() -> None:
    assert len(MISTAKES) >= 20


def test_keyed_state_without_keys_is_reported_when_the_function_opens(tmp_path: Path) -> None:
    """A function asks for its state when it opens: at the start of the job, before it reads a record."""
    RAN.clear()
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    stream(env).map(Unkeyed()).name("counting").print()
    with on_local_engine(), pytest.raises(EkornError, match=r"'counting'(.|\n)*'count'(.|\n)*key_by"):
        env.execute()
    assert RAN == []
