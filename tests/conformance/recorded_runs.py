"""Runs a recorded program on Ekorn and compares the outcome with PyFlink's, for every test of recorded programs."""

import json

from ekorn.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from ekorn.errors import JobExecutionError
from ekorn.testing.local_run import on_local_engine
from tests.recorded import outcome
from tests.recorded import program as programs

NONE_KEY = "None is not a key: it is refused by an error that names the record (reference 01 §3)"
CHANGEABLE_KEY = "a mutable key is refused by an error that names the record (reference 01 §5)"
OWN_PLAN = "PyFlink shows helper operators around key_by and partition_custom, and chained functions as one operator"
DELIBERATE = {
    "async_several_results": "a str that a function returns is refused: PyFlink would emit its letters",
    "broadcast_state_unknown": "a broadcast state must be passed to broadcast(), as in Flink (reference 05 §6)",
    "connect_keyed_function_without_keys": "a keyed function is refused on a stream without keys (reference 01 §7)",
    "context_facts": "no attempt behind the task's name (reference 02 §2); a chain is as wide as its widest operator",
    "context_facts_keyed": "no attempt behind the task's name (reference 02 §2), and no helper operators in it",
    "context_facts_two": "no attempt behind the task's name (reference 02 §2); the collecting sink is chained",
    "flat_map_string": "a str that a function returns is refused: PyFlink would emit its letters",
    "flat_map_none": "None stands for no results (reference 01 §4)",
    "key_by_not_callable": "positions and names of fields are accepted as keys (reference 01 §5)",
    "key_dict_untyped": CHANGEABLE_KEY,
    "key_none_batch": NONE_KEY,
    "key_none_first": NONE_KEY,
    "key_none_two_subtasks": NONE_KEY,
    "key_none_typed": NONE_KEY,
    "key_none_untyped": NONE_KEY,
    "keyed_stream_refuses": "the same calls are refused, by a more specific error",
    "names_by_default": "the operator after partition_custom has a readable name",
    "plan_keyed": OWN_PLAN,
    "plan_partitioners": OWN_PLAN,
    "plan_reduce": OWN_PLAN,
    "plan_stateless": OWN_PLAN,
    "process_without_timestamps": "the timestamp of a record without one is None (reference 03 §1)",
    "project_row": "rows can be projected (reference 01 §4)",
    "state_list_none_pickled": "a list state holds no None, whatever its type (reference 05 §2)",
    "state_map_changed_while_iterating": "an iteration covers the entries that existed when it began",
    "state_map_none_key": "the types of keyed state are not enforced: a state returns the values that were stored",
    "timer_in_timer": "timers fire in order of time (reference 06 §3); PyFlink sees new timers one bundle later",
    "window_trigger_cannot_merge": "a trigger that cannot merge is refused on merging windows (reference 04 §4)",
    "type_sql_timestamp_seen": "PyFlink misreads the fraction of instants before 1970",
}
STANDS_FOR = {
    "NoCurrentKey": ("RuntimeError",),
    "RecordTypeError": ("TypeError", "OverflowError"),
    "StateError": ("TypeError",),
}


def run(program, capsys, *, continuous=False):
    """Run a program on the local engine and return its outcome."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(program.parallelism)
    env.set_runtime_mode(RuntimeExecutionMode[program.mode])

    def lines_since():
        return capsys.readouterr().out.splitlines()

    with on_local_engine(continuous=continuous):
        return outcome.run(program, env, lines_since)


_plain_failure = outcome._failure


def failure_of_user_code(phase, problem):
    """Describe a failure; that of a job by what user code raised, as PyFlink's recordings do."""
    found = _plain_failure(phase, problem)
    if isinstance(problem, JobExecutionError):
        found["error"] = problem.message.partition(":")[0].rpartition(".")[2]
    return found


def like_pyflink():
    """Return the names of the programs whose results are to be PyFlink's."""
    return [name for name in programs.names() if not programs.load(name, "ekorn").quirk and name not in DELIBERATE]


def differences(recording, found, ordered):
    """Return the differences of an outcome to a recording; an error class of Ekorn may stand for PyFlink's."""
    both_failed = found["outcome"] == recording["outcome"] == "failure"
    if both_failed and recording["error"] in STANDS_FOR.get(found["error"], ()):
        found = found | {"error": recording["error"]}
    return outcome.differences(recording, found, ordered)


def recording_of(name):
    return json.loads((programs.OUTPUTS / f"{name}.json").read_text(encoding="utf-8"))
