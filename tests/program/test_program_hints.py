"""Hints at execute: results that go nowhere, and global variables that functions change."""

from __future__ import annotations

import functools
import json
import logging
import threading
from collections import Counter, defaultdict, deque
from operator import itemgetter

import pytest

from ekorn.common import Time, Types, WatermarkStrategy
from ekorn.datastream import (
    AsyncDataStream,
    AsyncFunction,
    BroadcastProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    StreamExecutionEnvironment,
)
from ekorn.datastream.connectors.number_seq import NumberSequenceSource
from ekorn.datastream.state import MapStateDescriptor, ValueStateDescriptor
from ekorn.errors import InvalidProgramError
from ekorn.graph.specs import MapSpec, SourceSpec
from ekorn.graph.stream_graph import Edge, StreamGraph
from ekorn.program.checks.changed_globals import changed_globals_text
from ekorn.program.checks.unread_results import unread_results_text
from ekorn.testing.local_run import on_local_engine

HINTS = "ekorn.program.checks.program_hints"


@pytest.fixture
def env():
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)


def hints_of(env, caplog):
    with caplog.at_level("WARNING", HINTS), on_local_engine():
        env.execute("hinted")
    return [record.getMessage() for record in caplog.records if record.name == HINTS]


# ------------------------------------------------------------------------------------------ results that go nowhere


def test_results_that_no_sink_reads_are_hinted_at(env, caplog):
    env.from_collection([1]).map(lambda v: v).filter(lambda v: True).name("kept")
    (hint,) = hints_of(env, caplog)
    assert hint.startswith("the results of operator 'kept' (written at test_program_hints.py:")
    assert hint.endswith(
        ") go nowhere: add a sink, such as print() or sink_to(...), or call execute_and_collect() on the stream"
    )


def test_several_ends_are_one_hint_that_names_a_few(env, caplog):
    stream = env.from_collection([1])
    for number in range(7):
        stream.map(lambda v: v).name(f"end {number}")
    (hint,) = hints_of(env, caplog)
    assert "'end 2'" in hint and "'end 3'" not in hint and " and 4 other operators go nowhere" in hint


def test_a_stream_whose_timestamps_were_assigned_on_the_side_is_hinted_at(env, caplog):
    stream = env.from_collection([1])
    stream.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
    stream.print()
    (hint,) = hints_of(env, caplog)
    assert hint.startswith("the results of operator 'Timestamps/Watermarks' (written at")


def test_an_end_beside_a_collected_stream_is_hinted_at_once(env, caplog):
    stream = env.from_collection([1])
    stream.map(lambda v: v).name("forgotten")
    with caplog.at_level("WARNING", HINTS), on_local_engine():
        for _ in range(2):
            assert list(stream.map(lambda v: v + 1).execute_and_collect()) == [2]
    assert len([record for record in caplog.records if "'forgotten'" in record.getMessage()]) == 1


class Aside(ProcessFunction):
    tag = OutputTag("aside", Types.LONG())

    def process_element(self, value, ctx):
        yield self.tag, value


class Rules(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield value

    def process_broadcast_element(self, value, ctx):
        return []


class Asked(AsyncFunction):
    async def async_invoke(self, value):
        return [value]


class Counted(MapFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_int_counter("count")

    def map(self, value):
        self.count.add(1)
        return value


class Queried(KeyedProcessFunction):
    def __init__(self):
        self.descriptor = ValueStateDescriptor("last", Types.LONG())
        self.descriptor.set_queryable("last")

    def open(self, runtime_context):
        self.last = runtime_context.get_state(self.descriptor)

    def process_element(self, value, ctx):
        self.last.update(value)


class QueriedInOpen(Queried):
    def __init__(self):
        pass

    def open(self, runtime_context):
        self.descriptor = ValueStateDescriptor("last", Types.LONG())
        self.descriptor.set_queryable("last")
        super().open(runtime_context)


def iterate(stream):
    loop = stream.iterate(200)
    loop.close_with(loop.map(lambda v: v - 1).filter(lambda v: v > 0))


@pytest.mark.parametrize(
    "draw",
    [
        lambda s: s.map(lambda v: v).print(),
        lambda s: s.process(Aside()).get_side_output(Aside.tag).print(),
        lambda s: s.connect(s.map(lambda v: v).broadcast(RULES)).process(Rules()).print(),
        lambda s: AsyncDataStream.ordered_wait(s, Asked(), Time.seconds(20)).print(),
        lambda s: s.map(Counted()),
        lambda s: s.key_by(lambda v: v).process(Queried()),
        lambda s: s.key_by(lambda v: v).process(QueriedInOpen()),
        lambda s: s.map(lambda v: v).union(s.map(lambda v: v)).print(),
        lambda s: s.key_by(lambda v: v).count_window(1).reduce(lambda a, b: a).print(),
        iterate,
    ],
    ids=[
        "printed", "side output", "broadcast", "asynchronous", "accumulator", "queryable", "queryable in open", "union",
        "window", "iteration",
    ],
)  # fmt: skip
def test_results_that_are_read_are_not_hinted_at(env, caplog, draw):
    draw(env.from_collection([1, 2]))
    assert hints_of(env, caplog) == []


RULES = MapStateDescriptor("rules", Types.INT(), Types.INT())


def test_a_program_without_operators_keeps_its_error(env, caplog):
    with pytest.raises(InvalidProgramError):
        hints_of(env, caplog)
    assert not caplog.records


# --------------------------------------------------------------------------------- global variables that are changed

TOTAL = 0
LIST: list = []
DICT: dict = {}
SET: set = set()
COUNTS: Counter = Counter()
QUEUE: deque = deque()
BYTES = bytearray()
GROUPS: defaultdict = defaultdict(list)
CONSTANT = {"a": 1}
CLIENT = None
LOG = logging.getLogger(__name__)
LOCK = threading.Lock()


class Tool:
    def add(self, value):
        return value


TOOL = Tool()


def assigned(value):
    global TOTAL  # noqa: PLW0603
    TOTAL += value
    return value


def deleted(value):
    global TOTAL  # noqa: PLW0603
    del TOTAL


def in_a_nested_function(value):
    def inner():
        LIST.append(value)

    inner()


def through_another(value):
    return assigned(value)


def decorated_by(function):
    @functools.wraps(function)
    def call(value):
        return function(value)

    return call


@decorated_by
def decorated(value):
    SET.add(value)


def augmented(value):
    COUNTS[value] += 1


def slice_of(value):
    LIST[1:2] = [value]


def removed(value):
    del DICT[value]


def of_a_part(value):
    GROUPS[value].append(1 if value else 2)


def in_a_branch(value):
    for each in range(value):
        if each > 1 and value < 7:
            DICT[each] = value if value else each


class Method(MapFunction):
    def map(self, value):
        return self.counted(value)

    def counted(self, value):
        DICT[value] = 1
        return value


class Opened(MapFunction):
    def open(self, runtime_context):
        LIST.clear()

    def map(self, value):
        return value


class OnTimer(KeyedProcessFunction):
    def process_element(self, value, ctx):
        return []

    def on_timer(self, timestamp, ctx):
        QUEUE.appendleft(timestamp)
        return []


class Called:
    def __call__(self, value):
        BYTES.extend(b"1")


class Holds(MapFunction):
    def __init__(self, function):
        self.function = function

    def map(self, value):
        return self.function(value)


def drawn(function):
    graph = StreamGraph()
    numbers = graph.source("numbers", SourceSpec(NumberSequenceSource(1, 2)), None)
    graph.operator("Map", MapSpec(function), (Edge(numbers),), None)
    return graph


def found_in(function):
    return changed_globals_text(drawn(function).nodes())


@pytest.mark.parametrize(
    ("function", "name", "variable"),
    [
        (assigned, "assigned", "TOTAL"),
        (deleted, "deleted", "TOTAL"),
        (in_a_nested_function, "in_a_nested_function", "LIST"),
        (through_another, "assigned", "TOTAL"),
        (decorated, "decorated", "SET"),
        (augmented, "augmented", "COUNTS"),
        (slice_of, "slice_of", "LIST"),
        (removed, "removed", "DICT"),
        (of_a_part, "of_a_part", "GROUPS"),
        (in_a_branch, "in_a_branch", "DICT"),
        (lambda value: LIST.append(value), "<lambda>", "LIST"),  # noqa: PLW0108
        (lambda value: COUNTS.update(a=1, **value), "<lambda>", "COUNTS"),  # Python 3.12 puts NULL before the variable
        (lambda value: [SET.add(each) for each in value], "<lambda>", "SET"),
        (lambda value: GROUPS.setdefault(value, []).append(value), "<lambda>", "GROUPS"),
        (functools.partial(lambda more, value: SET.update([value, more]), 1), "<lambda>", "SET"),
        (Method(), "Method.counted", "DICT"),
        (Opened(), "Opened.open", "LIST"),
        (OnTimer(), "OnTimer.on_timer", "QUEUE"),
        (Called(), "Called.__call__", "BYTES"),
        (Called().__call__, "Called.__call__", "BYTES"),
        (Holds(assigned), "assigned", "TOTAL"),
    ],
)
def test_a_global_variable_that_a_function_changes_is_found(function, name, variable):
    (hint,) = found_in(function)
    assert hint.startswith(f"{name} (test_program_hints.py:")
    assert f") changes the global variable {variable!r}. Each slot has its own copy" in hint


def test_the_line_is_that_of_the_change():
    (hint,) = found_in(assigned)
    assert hint.startswith(f"assigned (test_program_hints.py:{assigned.__code__.co_firstlineno + 2})")


def reads(value):
    LOG.warning("%s", value)
    with LOCK:
        found = CONSTANT["a"] + len(LIST) + COUNTS.get(value, 0)
    copied: dict = dict(CONSTANT)
    copied[value] = found
    copied.update(CONSTANT)
    (LIST + [1]).append(value)  # noqa: RUF005
    list(LIST).append(value)
    {LIST[0] if value else TOTAL: 1}.pop(LIST[1])
    copied[GROUPS[value][0] if value else GROUPS[0]] = CONSTANT
    json.loads("1")
    TOOL.add(value)
    return sorted(LIST) or CONSTANT["a"]


def made_when_needed(value):
    global CLIENT  # noqa: PLW0603
    if CLIENT is None:
        CLIENT = object()
    return value


def imported(value):
    global json  # noqa: PLW0603
    import json

    return value


def shadowed(value):
    LIST = []
    LIST.append(value)
    return LIST


def closure():
    seen, count = [], 0

    def call(value):
        nonlocal count
        count += 1
        seen.append(value)
        return value

    return call


class OfItself(MapFunction):
    def __init__(self):
        self.LIST = []
        LIST.append(self)  # in the program, not in a slot

    def map(self, value):
        self.LIST.append(value)
        self.LIST[0] += 1
        return value

    def report(self):
        DICT.update(a=1)  # nothing in a slot calls it


@functools.lru_cache
def cached(value):
    return value


class Odd:
    """Refuses to be looked at."""

    __slots__ = ()

    def __getattribute__(self, name):
        raise RuntimeError(f"nobody may ask for {name}")

    def __call__(self, value):
        return value


class OfACircle(MapFunction):
    def __init__(self):
        self.itself = self

    def map(self, value):
        return value


@pytest.mark.parametrize(
    "function",
    [
        reads,
        made_when_needed,
        imported,
        shadowed,
        closure(),
        OfItself(),
        OfACircle(),
        str,
        len,
        json.loads,
        itemgetter(0),
        functools.partial(int, base=10),
        [].append,
        cached,
    ],
    ids=lambda function: getattr(function, "__qualname__", type(function).__name__),
)
def test_a_function_that_changes_no_global_variable_is_not_hinted_at(function):
    assert found_in(function) == []


def test_an_object_that_refuses_to_be_looked_at_breaks_nothing():
    for function in (Odd(), Holds(Odd())):
        assert found_in(function) == []
        assert unread_results_text(drawn(function)) is not None


def test_a_changed_global_variable_is_hinted_at_once_for_all_functions(env, caplog):
    env.from_collection([1, 2]).map(assigned).map(assigned).map(through_another).key_by(assigned).print()
    (hint,) = hints_of(env, caplog)
    assert hint.startswith("assigned (test_program_hints.py:")
    assert hint.endswith(
        "and the program does not see the change: keep results in state, in an accumulator or in a sink"
    )


def test_key_selectors_and_timestamp_assigners_are_looked_at(env, caplog):
    timed = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: COUNTS.pop(value, 1))
    stream = env.from_collection([1]).assign_timestamps_and_watermarks(timed)
    stream.key_by(lambda value: SET.add(value) or value).map(lambda v: v).print()
    assert {hint.split("'")[1] for hint in hints_of(env, caplog)} == {"COUNTS", "SET"}
