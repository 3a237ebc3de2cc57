"""A job that is stopped with a savepoint at any point, with any failures, continues from it with the same results."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.common import Configuration
from ekorn.common.job_status import JobStatus
from ekorn.testing.scripted import Script, run_scripted
from tests.conformance.disturbed_jobs import (
    checkpoints,
    counted,
    crashes,
    draw,
    environment,
    folder,
    lost,
    runs,
    undisturbed,
)
from tests.conformance.external_system import ExternalSystem
from tests.examples_by_profile import examples

pytestmark = pytest.mark.usefixtures("silent_restarts")

endings = st.tuples(st.integers(1, 8), st.sampled_from(["stop", "stop", "drain"]), st.booleans())
lives = st.lists(
    st.fixed_dictionaries(
        {
            "runs": runs,
            "checkpoints": checkpoints,
            "crashes": crashes,
            "lost": lost,
            "parallelism": st.integers(1, 4),
            "between": st.frozensets(st.integers(1, 8), max_size=3),  # the epochs after which a savepoint is taken
            "prefer": st.booleans(),
            "ending": endings,
            "backend": st.sampled_from(["hashmap", "hashmap", "rocksdb"]),
        }
    ),
    min_size=2,
    max_size=4,
)


def live(name, life, system, directory, restore_path, *, last):
    """Run a job until it is stopped or has read everything; return the savepoint of the stop, or None."""
    env = environment(directory, life["parallelism"])
    env.configure(Configuration().set_string("state.backend.type", life["backend"]))
    env.set_max_parallelism(8)
    env.get_checkpoint_config().set_prefer_checkpoint_for_recovery(life["prefer"])
    draw(env, name, life["runs"], system)
    stopped = []

    def stop(handle):
        _, then, native = life["ending"]
        stopped.append(handle.request_savepoint(f"{directory}/savepoints", then=then, native=native))

    deeds = {n: lambda handle: handle.request_savepoint(f"{directory}/savepoints") for n in life["between"]}
    if not last:
        deeds[life["ending"][0]] = stop
    script = Script(life["checkpoints"], life["crashes"], life["lost"], deeds=deeds)
    run = run_scripted(env, script, **({"restore_path": restore_path} if restore_path else {}))
    assert run.status is JobStatus.FINISHED
    if stopped and stopped[0].exception(0) is None:
        return stopped[0].result(0)
    return None


SOME = [
    "count",
    "reduce of changeable records",
    "list state",
    "map state",
    "reducing and aggregating state",
    "stateless, over every partitioner",
    "requests in order",
    "two keyed operators",
    "a stream united with itself",
    "aggregates on columns",
]


@pytest.mark.parametrize("name", SOME)
@given(lives=lives)
@settings(max_examples=examples(2))
def test_a_job_lives_on_from_savepoint_to_savepoint(name, lives):
    system = ExternalSystem()
    with folder() as directory:
        path = None
        for number, life in enumerate(lives, start=1):
            path = live(name, life, system, directory, path, last=number == len(lives))
            if path is None:
                break  # the stop came too late or failed, so the job has read everything
        assert counted(system.records) == counted(undisturbed(name))


@pytest.mark.parametrize("name", ["aggregates", "windows"])
@given(lives=lives)
@settings(max_examples=examples(4))
def test_a_savepoint_taken_on_rows_goes_on_on_columns_and_the_other_way_round(name, lives):
    system = ExternalSystem()
    with folder() as directory:
        path = None
        for number, life in enumerate(lives, start=1):
            form = f"{name} on columns" if number % 2 else f"{name} on rows"
            ends_after, then, native = life["ending"]
            then = "stop" if name == "windows" else then  # a drain fires windows whose rows have not all arrived
            ending = {"ending": (ends_after, then, native)}
            path = live(form, life | ending, system, directory, path, last=number == len(lives))
            if path is None:
                break
        assert counted(system.records) == counted(undisturbed(f"{name} on rows"))


def moved(name, forms, backends, *, native=False):
    """Stop a job with a savepoint, go on in another form and backend; return all records."""
    system, path = ExternalSystem(), None
    with folder() as directory:
        for form, backend in zip(forms, backends, strict=True):
            env = environment(directory, 2, restarts=0)
            env.configure(Configuration().set_string("state.backend.type", backend))
            env.set_max_parallelism(8)
            draw(env, f"{name} on {form}", [5], system)
            stopped = []

            def stop(handle, stopped=stopped, directory=directory):
                stopped.append(handle.request_savepoint(f"{directory}/savepoints", then="stop", native=native))

            script = Script([True], deeds={} if path else {4: stop})
            run_scripted(env, script, **({"restore_path": path} if path else {}))
            path = stopped[0].result(0) if stopped else None
    return counted(system.records)


FORMS = list(product(("rows", "columns"), repeat=2))


@pytest.mark.parametrize("name", ["aggregates", "windows"])
@pytest.mark.parametrize("forms", FORMS, ids=map(" to ".join, FORMS))
@pytest.mark.parametrize(
    ("backends", "native"),
    [
        (("rocksdb", "rocksdb"), False),
        (("rocksdb", "rocksdb"), True),
        (("hashmap", "rocksdb"), False),
        (("rocksdb", "hashmap"), True),
    ],
)
def test_state_moves_between_forms_and_backends(name, forms, backends, native):
    assert moved(name, forms, backends, native=native) == counted(undisturbed(f"{name} on rows"))
