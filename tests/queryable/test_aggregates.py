"""Clients read the aggregates of a running job, on rows and on columns, as rows of their results."""

import pytest

from ekorn.common import Row, Types
from ekorn.datastream.columns import CountDistinct, Last, Mean, Sum
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.errors import QueryableNameTwice, UnknownKey
from tests.queryable.programs import asked_after, environment, numbers

NUMBER = Types.ROW_NAMED(["key", "number"], [Types.STRING(), Types.LONG()])
TOTALS = ValueStateDescriptor("totals")


def keyed_rows(env):
    return numbers(env, 400).map(lambda n: Row(key=f"k{n % 5}", number=n), NUMBER)


def aggregated(rows, form, name="totals"):
    keyed = (rows.to_columns(max_rows=7) if form == "columns" else rows).key_by("key")
    aggregates = {
        "total": Sum("number"),
        "mean": Mean("number"),
        "last": Last("number"),
        "distinct": CountDistinct("number"),
    }
    return keyed.aggregate(queryable_name=name, **aggregates)


def is_right(key, row):
    """Return whether a row has the aggregates of the first numbers of a key."""
    mine = range(key, row["last"] + 1, 5)
    return row == Row(total=sum(mine), mean=sum(mine) / len(mine), last=mine[-1], distinct=len(mine))


@pytest.mark.parametrize("form", ["rows", "columns"])
@pytest.mark.parametrize("turns", [None, 7], ids=["epochs", "continuous"])
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_the_results_of_a_key_are_read_while_the_job_runs(form, turns, backend, tmp_path):
    def ask(client, job):
        keys = [(f"k{n}",) for n in range(6)]
        found = {
            consistency: client.get_kv_states(job, "totals", keys, None, TOTALS, consistency=consistency).result(60)
            for consistency in ("live", "checkpoint")
        }
        with pytest.raises(UnknownKey):
            client.get_kv_state(job, "totals", 7, None, TOTALS).result(60)
        return found

    script = {"checkpoints": [True, True, True, False, False, False, False, False]}
    stream = aggregated(keyed_rows(environment(3, tmp_path)), form).uid("totals")
    found = asked_after(8, stream, ask, state_backend=backend, turns=turns, script=script)
    for states in found.values():
        *known, unknown = states
        assert unknown is None
        assert all(is_right(key, state.value()) for key, state in enumerate(known))
    live, saved = (sum(state.value()["distinct"] for state in found[each][:5]) for each in ("live", "checkpoint"))
    assert saved < live, "the checkpoint is older"


def test_two_aggregates_of_one_name_are_refused():
    env = environment()
    rows = keyed_rows(env)
    aggregated(rows, "columns").print()
    aggregated(rows, "rows").print()
    with pytest.raises(QueryableNameTwice, match="totals"):
        env.execute_async()


@pytest.mark.parametrize("name", ["", 7])
def test_a_name_that_is_none_is_refused(name):
    with pytest.raises(ValueError, match="not empty"):
        aggregated(keyed_rows(environment()), "columns", name)
