"""Every layout of saved windows translates to the canonical form and back, and never into other windows."""

import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekorn.checkpoint.restore_plan import plan_restore
from ekorn.common import Time
from ekorn.datastream.window import (
    EventTimeSessionWindows,
    EventTimeTrigger,
    ProcessingTimeTrigger,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from ekorn.errors import UserFunctionError
from ekorn.functions.windows.window_arithmetic import TimeSpan
from ekorn.graph.specs import ListContents, WindowSpec
from ekorn.operators.windows.saved_windows import (
    DEFAULT_IN_ROCKSDB,
    PANES,
    SavedDefaultInRocksDB,
    SavedPanes,
    SavedSessions,
    SavedWindow,
    translate,
)
from ekorn.state.keyed_backend import RestoredTable
from ekorn.state.snapshots import StateInfo
from tests.operators.windows.local_run import Run, environment, graph_of, timed

INFO = StateInfo("any", "any", "Long", schema="{}")
TUMBLING = WindowSpec(TumblingEventTimeWindows(10, 0), EventTimeTrigger(), ListContents(), lateness_ms=5)
BY_CLOCK = WindowSpec(TumblingProcessingTimeWindows(10, 0), ProcessingTimeTrigger(), ListContents())
SESSIONS = WindowSpec(EventTimeSessionWindows(10), EventTimeTrigger(), ListContents(), lateness_ms=5)

spans = st.integers(-5, 5).map(lambda n: TimeSpan(n * 10, n * 10 + 10))
windows = st.lists(
    st.builds(SavedWindow, st.sampled_from("ab"), spans, st.lists(st.integers()), st.booleans()),
    unique_by=lambda window: (window.key, window.span),
)


@pytest.mark.parametrize("layout", [SavedPanes(), SavedSessions(), SavedDefaultInRocksDB(TUMBLING)])
@given(windows)
def test_windows_are_the_same_after_a_round_trip(layout, saved):
    tables = {}
    layout.from_canonical(tables, INFO, saved)
    assert tables[layout.name].info.schema == INFO.schema
    assert sorted(layout.to_canonical(tables), key=repr) == sorted(saved, key=repr)
    assert not tables


@pytest.mark.parametrize("layout", [SavedPanes(), SavedSessions(), SavedDefaultInRocksDB(SESSIONS)])
def test_what_is_written_has_plain_tuples(layout):
    tables = {}
    layout.from_canonical(tables, INFO, [SavedWindow("a", TimeSpan(0, 10), [1], False)])
    written = [item for table in tables.values() for item in table.entries.items()]
    assert written and "TimeSpan" not in repr(written)


def test_a_window_by_the_clock_has_yet_to_fire():
    tables, layout = {}, SavedDefaultInRocksDB(BY_CLOCK)
    layout.from_canonical(tables, INFO, [SavedWindow("a", TimeSpan(0, 10), [1], False)])
    assert tables["_window/timers/processing"].entries == {("a", (9, (0, 10))): None}
    assert [window.has_fired for window in layout.to_canonical(tables)] == [False]


def test_a_window_that_has_fired_waits_for_its_end_of_lateness_only():
    tables = {}
    SavedDefaultInRocksDB(TUMBLING).from_canonical(
        tables, INFO, [SavedWindow("a", TimeSpan(0, 10), [1], True), SavedWindow("a", TimeSpan(10, 20), [2], False)]
    )
    assert set(tables["_window/timers/event"].entries) == {
        ("a", (14, (0, 10))),
        ("a", (19, (10, 20))),
        ("a", (24, (10, 20))),
    }


def test_a_window_that_is_there_already_stays_as_it_is():
    tables = {PANES: RestoredTable(INFO, {("a", (0, 10)): ([1], True)})}
    SavedPanes().from_canonical(tables, INFO, [SavedWindow("a", TimeSpan(0, 10), [2], False)])
    assert tables[PANES].entries == {("a", (0, 10)): ([1], True)}


def test_tables_of_other_states_are_left_alone():
    other = RestoredTable(StateInfo("mine", "value"), {"a": 1})
    tables = {"mine": other, PANES: RestoredTable(INFO, {("a", (0, 10)): ([1], False)})}
    translate(tables, SavedDefaultInRocksDB(TUMBLING), [SavedPanes(), SavedSessions()])
    assert tables["mine"] is other
    assert tables[DEFAULT_IN_ROCKSDB].entries == {("a", (0, 10)): [1]}


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (TumblingEventTimeWindows.of(Time.milliseconds(10)), EventTimeSessionWindows.with_gap(Time.milliseconds(5))),
        (EventTimeSessionWindows.with_gap(Time.milliseconds(5)), TumblingEventTimeWindows.of(Time.milliseconds(10))),
    ],
)
def test_panes_are_not_restored_as_sessions_nor_sessions_as_panes(before, after, backend):
    def job(assigner, state_backend, directory):
        stream = timed(environment(checkpoints=True), [(("a", n), n, None) for n in (1, 2, 3)]).key_by(lambda v: v[0])
        drawn = stream.window(assigner).reduce(lambda one, other: one).uid("windows")
        return Run(graph_of(drawn), directory=directory, state_backend=state_backend)

    with tempfile.TemporaryDirectory() as directory:
        old, new = job(before, "hashmap", directory), job(after, backend, directory)
        old.deploy()
        old.checkpoint(1, max_records=2)
        new.attempt = 1
        with pytest.raises(UserFunctionError, match="another uid"):
            new.deploy(plan_restore(new.graph, old.metadata, directory, allow_non_restored_state=False))
        old.close()
