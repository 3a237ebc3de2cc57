"""Recorded programs that run in many epochs, take checkpoints and crash half-way still have the outcome of PyFlink.

The programs were recorded with periodic watermarks, whose interval PyFlink never reached before the input ended: only
the last watermark came. Watermarks are not part of a checkpoint (reference 03 §5), and a watermark at the end of each
short epoch would make records late. The watermark interval is therefore off here, and no program is left out for its
watermarks. A second test moves watermarks over sorted input: windows and timers fire once, as in an undisturbed run.
"""

import logging

import pytest

from ekorn.common import RestartStrategies, WatermarkStrategy
from ekorn.common.job_status import JobStatus
from ekorn.common.watermark_strategy import Watermark, WatermarkGenerator
from ekorn.connectors.collection_source import CollectionSource
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.functions.source_contract import Batch, SplitReader
from ekorn.testing.scripted import Crash, Script, run_scripted
from tests.conformance.recorded_runs import DELIBERATE, recording_of
from tests.recorded import outcome
from tests.recorded import program as programs
from tests.recorded.encoding import encode

TIMED = ("window", "count_window", "timer", "side_output", "process")
KEYED = ("state", "reduce", "rolling", "keyed")
MANY = ("connect", "broadcast", "union", "diamond", "deep", "wide")
SHORT = (
    "broadcast_state_by_name",
    "connect_open_and_close",
    "connect_plain_function_with_keys",
    "connect_then_connect",
    "connect_union_on_a_side",
    "diamond_of_diamonds",
    "keyed_collected_typed",
    "keyed_function_without_key",
    "keyed_project",
    "keyed_union",
    "keyed_union_with_plain",
    "reduce_typed",
    "rolling_basic_position_single",
    "rolling_name_on_unnamed_rows",
    "rolling_negative_position",
    "side_output_keyed_and_summed",
    "side_output_same_id_of_two",
    "side_output_unused_tag",
    "state_map_dict_syntax",
    "state_map_iteration",
    "state_same_name_twice",
    "state_value_conversion",
    "union_of_three",
    "union_of_unions",
    "union_with_itself",
    "union_with_nothing",
)
NOT_IN_CHECKPOINTS = {
    "broadcast_contexts": "it asks for the year, and the script's clock has just begun",
    "connect_order_within_side": "it keeps what it knows in attributes",
    "connect_shared_attributes": "it keeps what it knows in attributes",
}


def left_out(name):
    """Return the reason why a program is not run here; empty if it is run."""
    if not (programs.OUTPUTS / f"{name}.json").exists():
        return "it is not recorded, for which test_recorded.py fails"
    recording, program = recording_of(name), programs.load(name, "ekorn")
    if recording["outcome"] != "values":
        return f"its outcome is {recording['outcome']}: there are no records to compare"
    if program.quirk or name in DELIBERATE:
        return "Ekorn differs from the recording without crashes, too"
    if program.mode != "STREAMING":
        return "a batch job takes no checkpoints"
    if name in SHORT:
        return "one or two records have no middle"
    return NOT_IN_CHECKPOINTS.get(name, "")


def chosen(*prefixes):
    return [name for name in programs.names() if name.startswith(prefixes) and not left_out(name)]


class OneRecordAnEpoch(SplitReader):
    def __init__(self, reader):
        self._reader = reader
        self._rests = False

    def read(self, max_records):
        self._rests = not self._rests
        return self._reader.read(1) if self._rests else Batch([])

    def position(self):
        return self._reader.position()

    @property
    def finished(self):
        return self._reader.finished


@pytest.fixture(autouse=True)
def opened(monkeypatch, caplog):
    """Make every epoch one record long; return the positions at which the readers of collections began."""
    caplog.set_level(logging.CRITICAL, logger="ekorn")
    whole = CollectionSource.create_reader
    begins = []

    def create_reader(source, split, position):
        begins.append(position)
        return OneRecordAnEpoch(whole(source, split, position))

    monkeypatch.setattr(CollectionSource, "create_reader", create_reader)
    return begins


def run(name, crash, turns=None):
    program = programs.load(name, "ekorn")
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(program.parallelism)
    env.enable_checkpointing(10)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 0))
    env.get_config().set_auto_watermark_interval(0)
    done = run_scripted(program.build(env), Script(crashes=[crash] if crash else [], turns=turns))
    assert done.status is JobStatus.FINISHED
    return program, done


def records_of(name):
    """Return the number of records of the longest collection; the epoch after them ends the job."""
    if name not in _RECORDS:
        _RECORDS[name] = len(run(name, None)[1].epochs) - 1
    return _RECORDS[name]


_RECORDS = {}

# A crash, and the number of records from which the job then continues. The first epoch carries no checkpoint.
CRASHES = {
    "after a checkpoint": lambda middle: (Crash("after-notify", middle - 1), middle),
    "right before a checkpoint": lambda middle: (Crash("after-epoch", middle + 1), middle),  # its snapshots are written
    "before any checkpoint": lambda middle: (Crash("after-epoch", 1), None),
}


@pytest.mark.parametrize("when", CRASHES)
@pytest.mark.parametrize("name", chosen(*TIMED, *KEYED, *MANY))
def test_a_crash_does_not_change_what_pyflink_gave(name, when, opened):
    records = records_of(name)
    assert records >= 3, "too short to crash after a checkpoint and before the end"
    crash, position = CRASHES[when](max(2, records // 2))
    opened.clear()
    program, done = run(name, crash)
    assert done.handle.progress().restarts == 1, "nothing crashed"
    assert opened[0] is None
    assert opened[-1] == position, "it did not go on from the newest checkpoint"
    found = {"outcome": "values", "values": [encode(record) for record in done.records]}
    assert not outcome.differences(recording_of(name), found, program.ordered)


def some_in_each_run():
    """Return the programs: every fourth is run in each test run, all in the soak."""
    names = chosen(*TIMED, *KEYED, *MANY)
    return [pytest.param(name, marks=() if n % 4 == 1 else pytest.mark.soak) for n, name in enumerate(names)]


@pytest.mark.parametrize("crash", [Crash("in-epoch", 2), Crash("after-notify", 2)], ids=lambda crash: crash.point)
@pytest.mark.parametrize("name", some_in_each_run())
def test_a_crash_of_a_job_that_runs_continuously_does_not_change_what_pyflink_gave(name, crash):
    program, done = run(name, crash, turns=len(name))
    assert done.handle.progress().restarts == 1, "nothing crashed"
    found = {"outcome": "values", "values": [encode(record) for record in done.records]}
    assert not outcome.differences(recording_of(name), found, program.ordered)


def test_programs_of_many_streams_are_run():
    assert len(chosen(*MANY)) >= 45


def test_programs_of_windows_timers_and_side_outputs_are_left_out_for_a_reason():
    assert len(chosen(*TIMED)) >= 58
    reasons = {name: left_out(name) for name in programs.names() if name.startswith(TIMED) and left_out(name)}
    assert reasons.keys() >= {
        "process_registers_timer",
        "process_without_timestamps",
        "side_output_misfit",
        "side_output_never_read",
        "side_output_unused_tag",
        "timer_in_timer",
        "window_all_aggregate",
        "window_continuous_timestamp",
        "window_continuous_trigger",
        "window_no_timestamps",
        "window_session_aggregate",
        "window_session_reduce",
        "window_trigger_cannot_merge",
    }, reasons


class WithEachRecord(WatermarkGenerator):
    def on_event(self, event, event_timestamp, output):
        output.emit_watermark(Watermark(event_timestamp - 1))

    def on_periodic_emit(self, output):
        pass


@pytest.fixture
def moving_watermarks(monkeypatch):
    """Sort the input by timestamp and emit a watermark after each record, so that no record is late after a restart."""
    plain = StreamExecutionEnvironment.from_collection
    monkeypatch.setattr(
        StreamExecutionEnvironment,
        "from_collection",
        lambda env, values, *rest: plain(env, sorted(values, key=lambda value: value[1]), *rest),
    )
    punctuated = staticmethod(lambda: WatermarkStrategy.for_generator(lambda context: WithEachRecord()))
    monkeypatch.setattr(WatermarkStrategy, "for_monotonous_timestamps", punctuated)


# The results of these programs depend on the watermark at the arrival of a record: they emit it, or use it to find late
# records. The first record after a restart finds no watermark.
ASKS_FOR_WATERMARK = (
    "timer_order",
    "window_count_process_keys",
    "window_count_trigger",
    "window_custom_trigger",
    "window_late_refires",
    "window_late_refires_reduce",
    "window_session_count_trigger",
)


def has_event_time(name):
    return name not in ASKS_FOR_WATERMARK and "for_monotonous_timestamps" in programs.standalone(name)


@pytest.mark.usefixtures("moving_watermarks")
@pytest.mark.parametrize("name", list(filter(has_event_time, chosen("window", "timer"))))
def test_what_fired_before_a_crash_does_not_fire_again(name):
    _, undisturbed = run(name, None)
    records = len(undisturbed.epochs) - 1
    assert records >= 3
    for middle in range(2, records):
        _, done = run(name, Crash("after-notify", middle - 1))
        assert done.handle.progress().restarts == 1
        assert [encode(r) for r in done.records] == [encode(r) for r in undisturbed.records], middle
