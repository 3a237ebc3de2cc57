"""The campaign on Spark: seeded schedules of faults against whole jobs, on an embedded Spark and on a cluster.

A schedule that fails prints the command to run it again. `tests/campaign` holds the schedules and the check, which are
those of the campaign without Spark; these tests play a few schedules, `make soak` all.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.campaign.campaign import run_schedule
from tests.campaign.schedules import schedule
from tests.campaign.zygote import Zygote

# Short schedules: a slot is stopped, and killed at points; a Python worker is killed; a driver is killed with its Java
# process, then a checkpoint is damaged; an executor is killed with its slots. CI has half an hour for everything.
EMBEDDED = (2077, 2061, *[pytest.param(seed, marks=pytest.mark.soak) for seed in (2065, 2054)])
CLUSTER = (2184,)


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    started = Zygote(on_spark=True)
    yield started
    started.close()


@pytest.mark.parametrize("seed", EMBEDDED)
def test_faults_change_no_output_on_an_embedded_spark(seed: int, tmp_path: Path, zygote: Zygote) -> None:
    outcome = run_schedule(schedule(seed, "spark"), tmp_path, zygote)
    assert outcome.acts or outcome.faults, "the faults happened"


@pytest.mark.soak  # a minute: CI has half an hour for everything
@pytest.mark.parametrize("seed", CLUSTER)
def test_faults_change_no_output_on_a_cluster(seed: int, tmp_path: Path, zygote: Zygote) -> None:
    outcome = run_schedule(schedule(seed, "cluster"), tmp_path, zygote)
    assert outcome.acts or outcome.faults, "the faults happened"
