"""A job that writes visits to a table, and the rows that the table then has."""

import datetime

from ekorn.common import Configuration, RestartStrategies, Row, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.testing.kits import SourceJob
from ekorn.testing.scripted import Crash, Script, ScriptedSource, run_scripted
from ekorn.types.data_types import DataTypes

VISIT = DataTypes.ROW(
    [
        DataTypes.FIELD("country", DataTypes.STRING()),
        DataTypes.FIELD("id", DataTypes.BIGINT()),
        DataTypes.FIELD("day", DataTypes.DATE()),
        DataTypes.FIELD("at", DataTypes.TIMESTAMP(6)),
    ]
)
COUNTRIES = ["fi", None, "a/b=c %", "日本"]
RECORDS = list(range(24))


def visit(number):
    day = datetime.date(2026, 1, 1 + number % 3)
    return Row(COUNTRIES[number % 4], number, day, datetime.datetime(2026, 1, 1 + number % 3, number))


EXPECTED = sorted((list(visit(number)) for number in RECORDS), key=lambda row: row[1])


def write(sink, script=None):
    env = StreamExecutionEnvironment.get_execution_environment(Configuration()).set_parallelism(2)
    env.enable_checkpointing(10)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(20, 0))
    source = env.from_source(ScriptedSource([RECORDS], [4]), WatermarkStrategy.no_watermarks(), "numbers")
    source.set_parallelism(1).rebalance().map(visit).sink_to(sink)
    run_scripted(env, script or Script())


def read(source):
    rows = [[row.country, row.id, row.day, row.at] for row in SourceJob(source, 2).read_all()]
    return sorted(rows, key=lambda row: row[1])


KILLED = Script(crashes=[Crash("in-epoch", 1), Crash("before-notify", 2), Crash("in-notify", 3)], kill=True)
