"""The campaign: seeded schedules of faults against whole jobs, and the promise that none of them shows in the output.

A failing one says how to run it again: `python -m tests.campaign <seed>`. What a schedule is: `schedules.py`; what must
come out: `harness.py`; how to enter a job of another kind: `jobs.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaign.harness import run_schedule
from tests.campaign.jobs import KINDS
from tests.campaign.schedules import DRIVER_POINTS, SLOT_POINTS, schedule
from tests.campaign.zygote import Zygote
from tests.s3_server import url_of

# Cheap ones that together have every kind of storage, engine, backend, act and damage.
EVERY_RUN = (0, 3, 12, 39, 40, 46, 75, 77, 83, 98, 108, 119, 145)
EVERY_RUN += (162, 180, 191, 228, 245, 258, 278, 299, 322, 341, 388, 389)
CAMPAIGN = range(1_000, 1_500)


def play(seed: int, folder: Path, zygote: Zygote, request: pytest.FixtureRequest) -> None:
    plan = schedule(seed)
    s3 = None
    if plan.storage == "s3":
        s3 = url_of(request.getfixturevalue("s3_endpoint"), f"seed-{seed}-{folder.name}")
    run_schedule(plan, folder, zygote, s3)


@pytest.mark.parametrize("seed", EVERY_RUN)
def test_faults_change_nothing(seed: int, tmp_path: Path, zygote: Zygote, request: pytest.FixtureRequest) -> None:
    play(seed, tmp_path, zygote, request)


@pytest.mark.soak
@pytest.mark.parametrize("seed", CAMPAIGN)
def test_five_hundred_schedules_of_faults_change_nothing(
    seed: int, tmp_path: Path, zygote: Zygote, request: pytest.FixtureRequest
) -> None:
    play(seed, tmp_path, zygote, request)


def test_a_seed_always_means_the_same_schedule() -> None:
    assert [schedule(seed) for seed in range(50)] == [schedule(seed) for seed in range(50)]
    assert len({str(schedule(seed)) for seed in CAMPAIGN}) == len(CAMPAIGN)


@pytest.mark.parametrize("seeds", [EVERY_RUN, CAMPAIGN], ids=["every run", "soak"])
def test_the_schedules_cover_everything_there_is(seeds: range) -> None:
    plans = [schedule(seed) for seed in seeds]
    scenes = [scene for plan in plans for scene in plan.scenes]
    seen = {value for plan in plans for value in (plan.storage, plan.engine, plan.backend, plan.kind)}
    assert seen == {"directory", "path", "faulty", "s3", "process", "registering", "hashmap", "rocksdb", *KINDS}
    acts = {act.what for scene in scenes for act in scene.acts}
    assert acts == {"kill-slot", "kill-driver", "stop-slot", "thaw", "second-driver", "usurper", "storage"}
    damages = {scene.damage.how for scene in scenes if scene.damage is not None}
    points = {fault.split(":")[0] for scene in scenes for fault in scene.faults}
    assert points == {*DRIVER_POINTS, *SLOT_POINTS}
    assert damages == {"truncate", "flip", "delete", "swap", "garbage", "clutter"}
    assert {act.detail for scene in scenes for act in scene.acts} >= {"errors", "full", "read-only", "slow"}
