"""Fifty schedules of faults of services that stand by for each other: each job's output is complete, and once."""

import tempfile

import pytest

from tests.service.cluster import cluster_in
from tests.service.ha_schedules import ACTS, ha_schedule, play

pytestmark = pytest.mark.long

EVERY_RUN = (1, 6)  # a leader that is stopped; a driver that is frozen while its leader is killed
ALL = range(50)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix="t-") as short:
        patch.setenv("EKORN_RUNTIME_DIR", f"{short}/run")  # the path of a socket is short
        with cluster_in(folder, "abc", lease_ms=3000) as found:
            yield found


@pytest.mark.parametrize("seed", EVERY_RUN)
def test_faults_of_services_lose_and_repeat_nothing(seed, cluster, tmp_path):
    play(ha_schedule(seed), cluster, tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("seed", [seed for seed in ALL if seed not in EVERY_RUN])
def test_faults_of_services_lose_and_repeat_nothing_in_all_schedules(seed, cluster, tmp_path):
    play(ha_schedule(seed), cluster, tmp_path)


def test_the_schedules_have_every_fault_and_a_seed_always_means_the_same_one():
    plans = [ha_schedule(seed) for seed in ALL]
    assert plans == [ha_schedule(seed) for seed in ALL]
    assert {act.what for plan in plans for act in plan.acts} == set(ACTS)
    assert {plan.acts[0].what for plan in plans} == set(ACTS)
