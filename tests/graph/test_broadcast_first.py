"""Which sources wait until a bounded broadcast input has ended."""

from collections.abc import Callable
from typing import Any

import pytest

from ekorn.common import Duration, Types, WatermarkStrategy
from ekorn.datastream import BroadcastProcessFunction, StreamExecutionEnvironment
from ekorn.datastream.connectors.file_system import FileSource, StreamFormat
from ekorn.datastream.state import MapStateDescriptor
from ekorn.graph.broadcast_first import awaited_by_sources

RULES = MapStateDescriptor("rules", Types.LONG(), Types.LONG())


class Keep(BroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        pass


def bounded(env: StreamExecutionEnvironment, name: str) -> Any:
    return env.from_collection([1, 2], Types.LONG()).name(name)


def unbounded(env: StreamExecutionEnvironment, name: str) -> Any:
    folder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), "watched")
    source = folder.monitor_continuously(Duration.of_seconds(1)).build()
    return env.from_source(source, WatermarkStrategy.no_watermarks(), name)


def joined(stream: Any, rules: Any) -> Any:
    return stream.connect(rules.broadcast(RULES)).process(Keep(), Types.LONG())


def plain(env: StreamExecutionEnvironment) -> None:
    joined(unbounded(env, "events").rebalance(), bounded(env, "rules").rebalance().map(lambda r: r)).print()


def rules_without_end(env: StreamExecutionEnvironment) -> None:
    joined(bounded(env, "events").rebalance(), unbounded(env, "rules")).print()


def rules_of_two_sources(env: StreamExecutionEnvironment) -> None:
    joined(
        bounded(env, "events").rebalance(), unbounded(env, "rules").union(env.from_collection(["1"], Types.STRING()))
    ).print()


def one_source(env: StreamExecutionEnvironment) -> None:
    numbers = bounded(env, "numbers")
    joined(numbers.rebalance(), numbers).print()


def one_after_the_other(env: StreamExecutionEnvironment) -> None:
    checked = joined(bounded(env, "rules").rebalance(), bounded(env, "rules of rules"))
    joined(unbounded(env, "events").rebalance(), checked).print()


def each_other(env: StreamExecutionEnvironment) -> None:
    left, right = bounded(env, "left"), bounded(env, "right")
    joined(left.rebalance(), right).print()
    joined(right.rebalance(), left).print()


WAITING: list[tuple[Callable[[StreamExecutionEnvironment], None], dict[str, set[str]]]] = [
    (plain, {"events": {"rules", "Map"}}),
    (rules_without_end, {}),
    (rules_of_two_sources, {}),
    (one_source, {}),
    (
        one_after_the_other,
        {"rules": {"rules of rules"}, "events": {"rules", "rules of rules", "Co-Process-Broadcast"}},
    ),
    (each_other, {}),
]


@pytest.mark.parametrize(("draw", "expected"), WAITING, ids=lambda given: getattr(given, "__name__", ""))
def test_sources_wait_for_the_vertices_above_a_bounded_broadcast_input(draw, expected):
    env = StreamExecutionEnvironment()
    draw(env)
    graph = env.job_graph()
    names = {vertex.id: vertex.name.removeprefix("Source: ") for vertex in graph.vertices}
    found = {names[source]: {names[each] for each in above} for source, above in awaited_by_sources(graph).items()}
    assert found == expected
