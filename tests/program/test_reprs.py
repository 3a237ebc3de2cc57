"""What a person sees who types the name of an environment, a stream or a job: text, and a drawing in a notebook."""

from __future__ import annotations

import re
from concurrent.futures import Future
from typing import Any
from xml.etree import ElementTree

import pytest

from ekorn.common import CompletableFuture, Configuration, JobClient, JobID, JobStatus, Time, Types
from ekorn.datastream import OutputTag, StreamExecutionEnvironment
from ekorn.datastream.state import MapStateDescriptor
from ekorn.datastream.window import CountEvictor, TumblingEventTimeWindows
from ekorn.driver.display.job_progress import JobProgress
from ekorn.driver.job_handle import JobHandle
from ekorn.errors import JobExecutionError
from ekorn.functions.watermark_strategy import Watermark
from ekorn.types.time_bounds import MAX_TIMESTAMP, MIN_TIMESTAMP


def first(record):
    return record[0]


LINE = first.__code__.co_firstlineno
BY_FIRST = f"HASH by first (test_reprs.py:{LINE})"
PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
WINDOWS = TumblingEventTimeWindows.of(Time.seconds(5))
TAG = OutputTag("late", Types.STRING())
SOURCE = "DataStream(Source: Collection Source, gives TupleTypeInfo(String, Integer))"
KEYED = f"KeyedStream(mine -> {BY_FIRST})"


@pytest.fixture
def env():
    return StreamExecutionEnvironment(Configuration())


@pytest.fixture
def source(env):
    return env.from_collection([("a", 1)], PAIR)


@pytest.fixture
def mine(source):
    return source.map(lambda pair: pair).name("mine")


SHOWN = {
    "source": (lambda a, b: a, SOURCE),
    "operator": (lambda a, b: b, "DataStream(mine)"),
    "keyed": (lambda a, b: b.key_by(first), KEYED),
    "rebalanced": (lambda a, b: b.rebalance(), "DataStream(mine -> REBALANCE)"),
    "union": (lambda a, b: b.union(b.rebalance()), "DataStream(union of mine, mine -> REBALANCE)"),
    "side output": (lambda a, b: b.get_side_output(TAG), "DataStream(side output 'late' of mine, gives String)"),
    "dead letters": (lambda a, b: b.get_dead_letters(), "DataStream(dead letters of mine)"),
    "selected": (lambda a, b: b.split(first).select("x", "a"), "DataStream(select 'a', 'x' of Split)"),
    "loop": (lambda a, b: b.iterate(10), "IterativeStream(IterationHead)"),
    "windows": (
        lambda a, b: b.key_by(first).window(WINDOWS),
        f"WindowedStream({KEYED}, TumblingEventTimeWindows(5000, 0), EventTimeTrigger())",
    ),
    "all windows": (
        lambda a, b: b.window_all(WINDOWS).evictor(CountEvictor.of(2)).allowed_lateness(7).side_output_late_data(TAG),
        "AllWindowedStream(DataStream(mine), TumblingEventTimeWindows(5000, 0), EventTimeTrigger(), "
        "evictor CountEvictor(2), allowed lateness 7 ms, late records to 'late')",
    ),
    "connected": (lambda a, b: a.connect(b), f"ConnectedStreams({SOURCE}, DataStream(mine))"),
    "broadcast": (
        lambda a, b: b.connect(a.broadcast(MapStateDescriptor("rules", Types.STRING(), Types.INT()))),
        "BroadcastConnectedStream(DataStream(mine), BroadcastStream(Source: Collection Source -> BROADCAST, gives "
        "TupleTypeInfo(String, Integer), states 'rules'))",
    ),
    "join": (
        lambda a, b: b.join(a).where(first),
        f"JoinedStreams(DataStream(mine), {SOURCE}, where first (test_reprs.py:{LINE}))",
    ),
    "interval join": (
        lambda a, b: b.key_by(first).interval_join(b.key_by(first)).between(Time.seconds(-1), Time.seconds(2)),
        f"IntervalJoined({KEYED}, {KEYED}, -1000 to 2000 ms)",
    ),
    "sink": (lambda a, b: b.print(), "DataStreamSink(Sink: Print to Std. Out)"),
}


@pytest.mark.parametrize("kind", SHOWN)
def test_a_stream_says_what_it_comes_from_and_is_drawn_with_it(source, mine, kind):
    make, text = SHOWN[kind]
    stream = make(source, mine)
    assert repr(stream) == text
    names = texts(in_notebook(stream))
    assert text in names and "Source: Collection Source" in names


@pytest.mark.parametrize("kind", [kind for kind in SHOWN if kind != "broadcast"])  # its one method is process()
def test_every_kind_of_stream_suggests_the_method_that_was_meant(source, mine, kind):
    make, _ = SHOWN[kind]
    stream = make(source, mine)
    method = next(name for name in dir(type(stream)) if name[0] != "_" and "_" in name.strip("_"))
    with pytest.raises(AttributeError, match=rf"; the method is {method}\(\)"):
        getattr(stream, re.sub("_([a-z])", lambda found: found[1].upper(), method))


def test_an_environment_says_what_it_would_run_and_draws_it(env, mine):
    mine.print()
    env.set_parallelism(2).enable_checkpointing(500)
    settings = "parallelism 2, STREAMING, a checkpoint every 500 ms, 3 operators to run"
    assert repr(env) == f"StreamExecutionEnvironment({settings})"
    assert list(boxes(in_notebook(env))) == ["Source: Collection Source", "mine", "Sink: Print to Std. Out"]
    env.close()
    assert "nothing to run" in repr(env) and "<svg" not in in_notebook(env)


def test_a_wrong_setting_does_not_keep_an_environment_from_being_shown(env):
    env.get_configuration().set_string("parallelism.default", "many")
    assert "parallelism.default" in repr(env) and "many" in repr(env)


# -------------------------------------------------------------------------------------------------- the drawing


def in_notebook(shown: Any) -> str:
    """Return what a notebook shows of an object that is the last line of a cell."""
    return shown._repr_html_()


def parsed(html: str) -> ElementTree.Element:
    return ElementTree.fromstring(html)


def texts(html: str) -> list[str]:
    """Return the text of a page without the tooltips."""
    return [each.text or "" for each in parsed(html).iter() if each.tag.rpartition("}")[2] in ("code", "text", "td")]


def test_names_are_escaped_and_nothing_is_loaded_from_elsewhere(source):
    html = in_notebook(source.map(first).name("<script>&\"'").uid("<b>").key_by("<i>").map(first))
    parsed(html)  # well-formed
    assert "<script>" not in html and "<b>" not in html and "<i>" not in html
    assert "&lt;script&gt;&amp;" in html
    assert re.findall(r"https?://[^\"]*", html) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"href|url\(|\son\w+=", html)


def boxes(html: str) -> dict[str, tuple[float, float]]:
    """Return the corner of each operator by its name."""
    found = {}
    for group in parsed(html).iter("{http://www.w3.org/2000/svg}g"):
        rect = group.find("{http://www.w3.org/2000/svg}rect")
        if rect is not None:
            name = group.findtext("{http://www.w3.org/2000/svg}text", "")
            found[name] = (float(rect.attrib["x"]), float(rect.attrib["y"]))
    return found


def test_operators_stand_after_their_inputs_and_no_two_at_one_place(env):
    a = env.from_collection([1]).map(first).name("a")
    b = a.map(first).name("b")
    c = b.map(first).name("c")
    late = a.union(c).map(first).name("late")  # reads an operator two columns before it
    found = boxes(in_notebook(late.connect(b)))
    assert found["a"][0] < found["b"][0] < found["c"][0] < found["late"][0]
    assert len(set(found.values())) == len(found) == 5
    assert found["b"][1] != found["a"][1], "the edge from a to late has a row of its own beside b"


def test_edges_are_labelled_with_side_output_partitioning_and_input(env):
    numbers = env.from_collection([1]).map(first)
    shown = texts(in_notebook(numbers.get_side_output(TAG).connect(numbers.rebalance()).map(first, first)))
    assert "input 1, side output …" in shown and "input 2, REBALANCE" in shown


# ------------------------------------------------------------------------------------------------------- the job


def test_progress_shows_what_has_happened_and_the_end_of_input_in_words():
    progress = JobProgress(JobStatus.RUNNING, records_read=5, last_epoch_ms=0.284772999, watermark=MAX_TIMESTAMP)
    assert repr(progress) == "JobProgress(status=RUNNING, records_read=5, last_epoch_ms=0.3, watermark=end of input)"
    assert repr(JobProgress(watermark=MIN_TIMESTAMP)) == "JobProgress(status=CREATED, watermark=none)"
    assert texts(in_notebook(progress)) == ["RUNNING", "5", "0.3", "end of input"]


def test_the_last_watermark_is_shown_as_the_end_of_input():
    assert [repr(Watermark(5)), repr(Watermark.MAX)] == ["Watermark(5 ms)", "Watermark(end of input)"]


def test_a_client_shows_its_job():
    handle = JobHandle(JobID("1" * 32), "<orders>")
    handle.view.update(JobProgress(status=JobStatus.RUNNING, last_failure="a < b"))
    client = JobClient(handle)
    assert repr(client) == f"JobClient('<orders>', {'1' * 32}, RUNNING)"
    assert texts(in_notebook(client)) == ["<orders>", "1" * 32, "RUNNING", "'a < b'"]


def test_a_future_shows_its_result_or_the_first_line_of_its_error():
    assert repr(CompletableFuture(Future())) == "CompletableFuture(pending)"
    assert repr(CompletableFuture.completed(5)) == "CompletableFuture(result 5)"
    failed = CompletableFuture(Future())
    failed.set_exception(JobExecutionError("orders", "no", user_traceback="Traceback ..."))
    assert repr(failed) == "CompletableFuture(failed with JobExecutionError: job 'orders' failed: no)"
