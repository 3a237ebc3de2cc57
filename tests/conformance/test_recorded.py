"""Every program recorded on PyFlink gives the same on Tamias: values, printed lines, files, plans, failures."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

RECORDED = Path(__file__).parent.parent / "recorded"
sys.path.insert(0, str(RECORDED))

from tamias.datastream import RuntimeExecutionMode, StreamExecutionEnvironment  # noqa: E402
from tamias.errors import JobExecutionError  # noqa: E402
from tamias.testing.local_run import on_local_engine  # noqa: E402
from tests.recorded import outcome  # noqa: E402
from tests.recorded import program as programs  # noqa: E402

NONE_KEY = "None is no key here: it is refused with the record named (reference 01 §3)"
CHANGEABLE_KEY = "a key that can change is refused with the record named (reference 01 §5)"
OWN_PLAN = "PyFlink shows its helpers around key_by and partition_custom, and runs of functions as one operator"
DELIBERATE = {
    "broadcast_state_unknown": "a broadcast state has to be given to broadcast(), as in Flink (reference 05 §6)",
    "connect_keyed_function_without_keys": "a keyed function is refused where there are no keys (reference 01 §7)",
    "context_facts": "no attempt behind the task's name (reference 02 §2); a chain is as wide as its widest operator",
    "context_facts_keyed": "no attempt behind the task's name (reference 02 §2), and no helper operators in it",
    "context_facts_two": "no attempt behind the task's name (reference 02 §2); the collecting sink is chained",
    "flat_map_none": "None stands for no results (reference 01 §4)",
    "key_by_not_callable": "positions and names of fields are taken as keys (reference 01 §5)",
    "key_dict_untyped": CHANGEABLE_KEY,
    "key_list_typed": CHANGEABLE_KEY,
    "key_list_untyped": CHANGEABLE_KEY,
    "key_none_batch": NONE_KEY,
    "key_none_first": NONE_KEY,
    "key_none_two_subtasks": NONE_KEY,
    "key_none_typed": NONE_KEY,
    "key_none_untyped": NONE_KEY,
    "keyed_stream_refuses": "the same calls are refused, by a more telling error",
    "names_by_default": "the operator behind partition_custom has a name that people can read",
    "plan_keyed": OWN_PLAN,
    "plan_partitioners": OWN_PLAN,
    "plan_reduce": OWN_PLAN,
    "plan_stateless": OWN_PLAN,
    "process_without_timestamps": "the timestamp of a record without one is None (reference 03 §1)",
    "project_row": "rows can be projected (reference 01 §4)",
    "state_list_none_pickled": "a list state holds no None, whatever its type (reference 05 §2)",
    "state_map_changed_while_iterating": "an iteration goes over the entries there were when it began",
    "state_map_none_key": "the types of keyed state are not enforced: a state gives back what it was given",
    "timer_in_timer": "timers fire in order of time (reference 06 §3); PyFlink hears of new ones a bundle later",
    "window_trigger_cannot_merge": "a trigger that cannot merge is refused on windows that do (reference 04 §4)",
    "type_sql_timestamp_seen": "PyFlink misreads the fraction of instants before 1970",
}
STANDS_FOR = {
    "NoCurrentKey": ("RuntimeError",),
    "RecordTypeError": ("TypeError", "OverflowError"),
    "StateError": ("TypeError",),
}


@pytest.fixture
def job_failures_as_what_user_code_raised(monkeypatch):
    plain = outcome._failure

    def failure(phase, problem):
        found = plain(phase, problem)
        if isinstance(problem, JobExecutionError):
            found["error"] = problem.message.partition(":")[0].rpartition(".")[2]
        return found

    monkeypatch.setattr(outcome, "_failure", failure)


def run(program, capsys):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(program.parallelism)
    env.set_runtime_mode(RuntimeExecutionMode[program.mode])

    def lines_since():
        return capsys.readouterr().out.splitlines()

    with on_local_engine():
        return outcome.run(program, env, lines_since)


def differences(recording, found, ordered):
    both_failed = found["outcome"] == recording["outcome"] == "failure"
    if both_failed and recording["error"] in STANDS_FOR.get(found["error"], ()):
        found = found | {"error": recording["error"]}
    return outcome.differences(recording, found, ordered)


def recording_of(name):
    return json.loads((programs.OUTPUTS / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.usefixtures("job_failures_as_what_user_code_raised")
@pytest.mark.parametrize("name", programs.names())
def test_a_program_gives_what_pyflink_gave(name, capsys):
    recording, program = recording_of(name), programs.load(name, "tamias")
    assert recording["sha256"] == programs.sha256(name), "the program was changed after it was recorded"
    found = run(program, capsys)
    different = differences(recording, found, program.ordered)
    if program.quirk:
        assert found.get("error") not in ("AssertionError", "KeyError", "AttributeError"), found
    elif name in DELIBERATE:
        assert different, f"{name} gives the same now: take it off the list"
    else:
        assert not different, "\n".join(different)


def test_every_difference_on_the_list_is_of_a_recorded_program():
    assert DELIBERATE.keys() <= set(programs.names())


def same_at_any_parallelism(name):
    """Programs whose records do not depend on the order in which one subtask hears from several others."""
    recorded = (programs.OUTPUTS / f"{name}.json").exists()  # one that is not fails the test above, not this file
    alike = ("workload", "key", "state", "rolling", "connect_map", "connect_keyed", "diamond", "union", "deep", "wide")
    if not recorded or not name.startswith(alike):
        return False
    program = programs.load(name, "tamias")
    return (
        program.parallelism == 1
        and recording_of(name)["outcome"] == "values"
        and not program.quirk
        and name not in (*DELIBERATE, "key_by_in_sequence", "rolling_basic")
    )


@pytest.mark.parametrize("parallelism", [2, 3])
@pytest.mark.parametrize("name", list(filter(same_at_any_parallelism, programs.names())))
def test_more_subtasks_give_the_same_records_in_some_order(name, parallelism, capsys):
    program = replace(programs.load(name, "tamias"), parallelism=parallelism)
    found = run(program, capsys)
    assert not differences(recording_of(name), found, ordered=False)
