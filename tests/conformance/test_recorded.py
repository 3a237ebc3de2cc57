"""Every program recorded on PyFlink has the same outcome on Ekorn: values, printed lines, files, plans, failures."""

from dataclasses import replace

import pytest

from tests.conformance.recorded_runs import DELIBERATE, differences, recording_of, run
from tests.recorded import program as programs


def continuously():
    """Return the programs once more, to be run continuously: every eighth in each test run, all of them in the soak."""
    marks = [() if number % 8 == 0 else pytest.mark.soak for number in range(len(programs.names()))]
    for name, mark in zip(programs.names(), marks, strict=True):
        yield pytest.param(name, True, marks=mark, id=f"{name}-continuous")


@pytest.mark.usefixtures("job_failures_as_what_user_code_raised")
@pytest.mark.parametrize(("name", "continuous"), [*((n, False) for n in programs.names()), *continuously()])
def test_a_program_gives_what_pyflink_gave(name, continuous, capsys):
    recording, program = recording_of(name), programs.load(name, "ekorn")
    assert recording["sha256"] == programs.sha256(name), "the program was changed after it was recorded"
    found = run(program, capsys, continuous=continuous)
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
    """Return whether the records of a program do not depend on the order in which a subtask receives its inputs."""
    recorded = (programs.OUTPUTS / f"{name}.json").exists()  # else the test above fails, not the collection
    alike = ("workload", "key", "state", "rolling", "connect_map", "connect_keyed", "diamond", "union", "deep", "wide")
    if not recorded or not name.startswith(alike):
        return False
    program = programs.load(name, "ekorn")
    return (
        program.parallelism == 1
        and recording_of(name)["outcome"] == "values"
        and not program.quirk
        and name not in (*DELIBERATE, "key_by_in_sequence", "rolling_basic")
    )


@pytest.mark.parametrize("parallelism", [2, 3])
@pytest.mark.parametrize("name", list(filter(same_at_any_parallelism, programs.names())))
def test_more_subtasks_give_the_same_records_in_some_order(name, parallelism, capsys):
    program = replace(programs.load(name, "ekorn"), parallelism=parallelism)
    found = run(program, capsys)
    assert not differences(recording_of(name), found, ordered=False)
