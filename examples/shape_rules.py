"""Rules that change while the job runs: the job finds pairs of coloured shapes by rules that are broadcast to it.

    python examples/shape_rules.py [--seconds 12]

Shapes stream in, keyed by colour: a red square matches a red triangle only. Rules ("a square, then a triangle") arrive
on a second stream, and every subtask keeps all rules as broadcast state. A second rule of the same name replaces the
first, and the shapes that waited for the first rule are dropped in all colours. A rule without shapes is withdrawn.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ekorn.common import Types, WatermarkStrategy
from ekorn.datastream import DataStream, KeyedBroadcastProcessFunction, StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.datastream.state import MapStateDescriptor

SHAPES = {"square": "■", "triangle": "▲", "circle": "●", "diamond": "◆"}
COLOURS = {"red": 31, "green": 32, "yellow": 33, "blue": 34}
PER_SECOND = 15
RULES = [  # (name, first shape, second shape), or no shapes to withdraw the rule
    ("house", "square", "triangle"),
    ("eyes", "circle", "circle"),
    ("kite", "diamond", "triangle"),
    ("house", "triangle", "square"),
    ("eyes", None, None),
    ("crown", "circle", "diamond"),
]

RULES_STATE = MapStateDescriptor("rules", Types.STRING(), Types.PICKLED_BYTE_ARRAY())
WAITING = MapStateDescriptor("waiting", Types.STRING(), Types.PICKLED_BYTE_ARRAY())


def shape(number: int) -> tuple[int, str, str]:
    """Return the number, colour and form of a shape. They depend on its number alone, so it can be read again."""
    mixed = (number * 2654435761) % 2**32
    return number, list(COLOURS)[mixed >> 13 & 3], list(SHAPES)[mixed >> 21 & 3]


class Match(KeyedBroadcastProcessFunction):
    """Keeps the first shapes of each colour and rule; a second shape matches all of them."""

    def open(self, runtime_context):
        self.waiting = runtime_context.get_map_state(WAITING)
        self.tells = runtime_context.get_index_of_this_subtask() == 0  # every subtask receives a rule, one emits it

    def process_element(self, value, ctx):
        number, colour, form = value
        for name, (first, second) in ctx.get_broadcast_state(RULES_STATE).items():
            waiting = self.waiting.get(name) or []
            if form == second:
                for other in waiting:
                    yield "match", name, colour, (other, first), (number, second)
                waiting = []
            if form == first:
                waiting = [*waiting, number]
            if waiting:
                self.waiting.put(name, waiting)
            else:
                self.waiting.remove(name)

    def process_broadcast_element(self, value, ctx):
        name, first, second = value
        rules = ctx.get_broadcast_state(RULES_STATE)
        if rules.contains(name):
            ctx.apply_to_keyed_state(WAITING, lambda colour, waiting: waiting.remove(name))
        if first is None:
            rules.remove(name)
        else:
            rules.put(name, (first, second))
        if self.tells:
            yield "rule", *value


def matches(shapes: DataStream, rules: DataStream) -> DataStream:
    """Draw the job: shapes by colour, connected to the broadcast rules."""
    by_colour = shapes.key_by(lambda seen: seen[1], Types.STRING())
    return by_colour.connect(rules.broadcast(RULES_STATE)).process(Match()).name("match shapes").uid("match")


def watch(seconds: float) -> Iterator[tuple[Any, ...]]:
    """Run the job and yield rules and matches as they arrive."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    shapes = DataGeneratorSource(shape, int(seconds * PER_SECOND), RateLimiterStrategy.per_second(PER_SECOND))
    pace = RateLimiterStrategy.per_second(len(RULES) / seconds)
    rules = DataGeneratorSource(lambda number: RULES[number], len(RULES), pace)
    nothing = WatermarkStrategy.no_watermarks()
    found = matches(
        env.from_source(shapes, nothing, "shapes").set_parallelism(1),  # one subtask keeps their order
        env.from_source(rules, nothing, "rules").set_parallelism(1),
    )
    with found.execute_and_collect("shape rules") as news:
        yield from news


def main(arguments: list[str] | None = None) -> int:
    """Draw each match in its colour, and at the end print how often each rule matched."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=12.0, help="the seconds for which shapes stream in")
    seconds = parser.parse_args(arguments).seconds
    print(f"{PER_SECOND} shapes a second in {len(COLOURS)} colours; {len(RULES)} changes of rules on the way ...")
    counts: Counter[str] = Counter()
    rules: dict[str, tuple[str, str]] = {}
    wrong = 0
    for kind, name, *what in watch(seconds):
        if kind == "rule":
            tell(name, *what)
            rules[name] = tuple(what)
        else:
            colour, first, second = what
            counts[name] += 1
            wrong += not is_right(rules[name], colour, first, second)
            print(f"    {drawn(first, colour)} - {drawn(second, colour)}   {name}", flush=True)
    print("\nmatches: " + ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) + f"; {wrong} wrong")
    return 1 if wrong else 0


def tell(name: str, first: str | None, second: str | None) -> None:
    """Print the new content of a rule."""
    text = "is withdrawn" if first is None or second is None else f"is {SHAPES[first]} then {SHAPES[second]}"
    print(f"\n  from now on {name!r} {text}", flush=True)


def is_right(rule: tuple[str, str], colour: str, first: tuple[int, str], second: tuple[int, str]) -> bool:
    """Return whether a match follows its present rule, in one colour and in the order of the shapes."""
    seen = [shape(number)[1:] for number, _ in (first, second)]
    return first[0] < second[0] and seen == [(colour, rule[0]), (colour, rule[1])]


def drawn(shape: tuple[int, str], colour: str) -> str:
    """Return a shape with its number: coloured on a terminal, elsewhere with the name of the colour."""
    number, form = shape
    if sys.stdout.isatty():
        return f"\033[{COLOURS[colour]}m{SHAPES[form]}\033[0m {number:>3}"
    return f"{colour:>6} {SHAPES[form]} {number:>3}"


if __name__ == "__main__":
    sys.exit(main())
