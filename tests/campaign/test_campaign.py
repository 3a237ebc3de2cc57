"""The campaign: seeded schedules of faults against whole jobs, whose output must be as if there had been no fault.

A schedule that fails prints the command to run it again: `python -m tests.campaign <seed>`. `schedules.py` makes the
schedules, `campaign.py` plays them, `jobs.py` holds the jobs. These tests play a few schedules, `make soak` all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ekorn.errors import Fenced, JobExecutionError, UserFunctionError
from tests.campaign.campaign import run_schedule
from tests.campaign.driver import kinds_of
from tests.campaign.jobs import KINDS
from tests.campaign.outcome import Outcome, summary
from tests.campaign.schedules import (
    CONTINUOUS_POINTS,
    DAMAGES,
    DRIVER_POINTS,
    SLOT_POINTS,
    STORAGE_FAULTS,
    TWO_PHASE_POINTS,
    UNALIGNED_POINTS,
    Act,
    Damage,
    Scene,
    Schedule,
    continuous,
    in_columns,
    in_regions,
    schedule,
    unaligned,
)
from tests.campaign.seeds import CAMPAIGN, EVERY_RUN
from tests.campaign.zygote import Zygote
from tests.s3_server import url_of

ON_SPARK = range(2_000, 2_100)  # tests/spark/test_campaign.py plays a few of them
ON_A_CLUSTER = range(2_000, 2_020)
ACTS = {
    "kill-slot",
    "kill-slot at-point",
    "kill-driver",
    "kill-driver at-point",
    "stop-slot",
    "thaw",
    "second-driver",
    "usurper",
    "usurper at-point",
    *(f"storage {what}" for what in STORAGE_FAULTS),
}


def play(
    seed: int,
    folder: Path,
    zygote: Zygote,
    request: pytest.FixtureRequest,
    edition: Callable[[Schedule], Schedule] = lambda plan: plan,
) -> None:
    plan = edition(schedule(seed))
    s3 = None
    if plan.storage == "s3":
        s3 = url_of(request.getfixturevalue("s3_endpoint"), f"seed-{seed}-{folder.name}")
    run_schedule(plan, folder, zygote, s3)


@pytest.mark.parametrize("seed", EVERY_RUN)
def test_faults_change_no_output(seed: int, tmp_path: Path, zygote: Zygote, request: pytest.FixtureRequest) -> None:
    play(seed, tmp_path, zygote, request)


def test_checkpoint_that_a_driver_was_deleting_is_refused_behind_a_damaged_one(tmp_path: Path, zygote: Zygote) -> None:
    ends_by_its_fault = Act("kill-driver", after=1_000_000)
    damaged = Scene(
        1, faults=("tombstone:*:2:kill",), acts=(ends_by_its_fault,), damage=Damage("flip", "state", all_of_them=False)
    )
    plan = replace(schedule(1156), incremental=False, scenes=(damaged,))
    assert (plan.storage, plan.retained) == ("path", 1)
    outcome = run_schedule(plan, tmp_path, zygote)
    assert outcome.faults == set(damaged.faults)
    assert len(outcome.refusals) == 2
    assert "a checkpoint that a driver was deleting" in outcome.refusals[1]


@pytest.mark.parametrize("seed", EVERY_RUN[:4])
def test_faults_change_no_output_of_a_continuous_job(
    seed: int, tmp_path: Path, zygote: Zygote, request: pytest.FixtureRequest
) -> None:
    play(seed, tmp_path, zygote, request, continuous)


@pytest.mark.parametrize("seed", EVERY_RUN[4:7])
def test_faults_change_no_output_of_a_job_with_unaligned_checkpoints(
    seed: int, tmp_path: Path, zygote: Zygote, request: pytest.FixtureRequest
) -> None:
    play(seed, tmp_path, zygote, request, unaligned)


@pytest.mark.parametrize("seed", EVERY_RUN[8:10])
def test_faults_change_no_output_of_a_continuous_job_of_several_regions(
    seed: int, tmp_path: Path, zygote: Zygote, request: pytest.FixtureRequest
) -> None:
    play(seed, tmp_path, zygote, request, in_regions)


def on_columns(plan: Schedule) -> Schedule:
    return in_columns((replace, continuous, unaligned)[plan.seed % 3](plan))


@pytest.mark.parametrize("seed", EVERY_RUN[10:13])
def test_faults_change_no_output_of_a_job_on_columns(
    seed: int, tmp_path: Path, zygote: Zygote, request: pytest.FixtureRequest
) -> None:
    play(seed, tmp_path, zygote, request, on_columns)


@pytest.mark.soak
@pytest.mark.parametrize("seed", CAMPAIGN[:200])
def test_two_hundred_schedules_change_no_output_of_a_job_on_columns(
    seed: int, tmp_path: Path, zygote: Zygote, request: pytest.FixtureRequest
) -> None:
    play(seed, tmp_path, zygote, request, on_columns)


@pytest.mark.soak
@pytest.mark.parametrize("edition", [continuous, unaligned, in_regions])
@pytest.mark.parametrize("seed", CAMPAIGN[:500])
def test_five_hundred_schedules_change_no_output_of_a_continuous_job(
    seed: int,
    edition: Callable[[Schedule], Schedule],
    tmp_path: Path,
    zygote: Zygote,
    request: pytest.FixtureRequest,
) -> None:
    play(seed, tmp_path, zygote, request, edition)


def test_schedules_of_unaligned_checkpoints_have_faults_while_marks_overtake() -> None:
    scenes = [scene for seed in CAMPAIGN[:500] for scene in unaligned(schedule(seed)).scenes]
    killed = {fault.split(":")[0] for scene in scenes for fault in scene.faults if fault.endswith(":kill")}
    assert killed >= {*DRIVER_POINTS, *SLOT_POINTS, *UNALIGNED_POINTS}


def test_schedules_of_continuous_jobs_have_faults_while_marks_are_aligned() -> None:
    scenes = [scene for seed in CAMPAIGN[:500] for scene in continuous(schedule(seed)).scenes]
    killed = {fault.split(":")[0] for scene in scenes for fault in scene.faults if fault.endswith(":kill")}
    assert killed >= {*DRIVER_POINTS, *SLOT_POINTS, *CONTINUOUS_POINTS}


def test_a_seed_always_means_the_same_schedule() -> None:
    assert [schedule(seed) for seed in range(50)] == [schedule(seed) for seed in range(50)]
    assert len({str(schedule(seed)) for seed in CAMPAIGN}) == len(CAMPAIGN)


@pytest.mark.parametrize("seeds", [EVERY_RUN, CAMPAIGN], ids=["every run", "soak"])
def test_the_schedules_cover_every_kind_of_fault_and_setting(seeds: range) -> None:
    plans = [schedule(seed) for seed in seeds]
    scenes = [scene for plan in plans for scene in plan.scenes]
    seen = {value for plan in plans for value in (plan.storage, plan.engine, plan.backend, plan.kind, plan.sink)}
    places = {"directory", "path", "faulty", "s3"}
    assert seen == {*places, "process", "registering", "hashmap", "rocksdb", "files", "two-phase", *KINDS}
    assert {act.name for scene in scenes for act in scene.acts} == ACTS
    points = {fault.split(":")[0] for scene in scenes for fault in scene.faults}
    assert points == {*DRIVER_POINTS, *SLOT_POINTS, *TWO_PHASE_POINTS}
    assert {scene.damage.how for scene in scenes if scene.damage is not None} == {*DAMAGES}


def test_every_point_kills_its_process_in_the_soak() -> None:
    scenes = [scene for seed in CAMPAIGN for scene in schedule(seed).scenes]
    killed = {fault.split(":")[0] for scene in scenes for fault in scene.faults if fault.endswith(":kill")}
    assert killed == {*DRIVER_POINTS, *SLOT_POINTS, *TWO_PHASE_POINTS}


def test_the_schedules_on_spark_cover_its_processes_and_every_kind_of_job() -> None:
    plans = [schedule(seed, "spark") for seed in ON_SPARK]
    acts = {act.what for plan in plans for scene in plan.scenes for act in scene.acts}
    assert acts == {*(name.split()[0] for name in ACTS), "kill-worker", "stop-workers", "kill-java"}
    assert {plan.kind for plan in plans} == {*KINDS}
    assert {plan.storage for plan in plans} == {"directory", "path", "faulty", "s3"}
    points = {fault.split(":")[0] for plan in plans for scene in plan.scenes for fault in scene.faults}
    assert points >= {*DRIVER_POINTS, *SLOT_POINTS} - {"publish"}


def test_the_schedules_on_a_cluster_kill_executors_with_and_without_their_slots() -> None:
    plans = [schedule(seed, "cluster") for seed in ON_A_CLUSTER]
    acts = {act.name for plan in plans for scene in plan.scenes for act in scene.acts}
    assert acts >= {"kill-executor", "kill-executor with-slots", "kill-worker", "stop-workers", "kill-java"}
    assert acts >= {"kill-slot", "kill-driver", "kill-driver with-java", "usurper"}


def test_a_schedule_names_the_command_that_plays_it_again() -> None:
    commands = [schedule(7).command, schedule(7, "spark").command, schedule(7, "cluster").command]
    assert commands == [f"python -m tests.campaign {options}7" for options in ("", "--spark ", "--spark --cluster ")]
    assert in_columns(unaligned(schedule(7))).command == "python -m tests.campaign --columns --unaligned 7"


def test_the_summary_counts_what_happened_and_names_schedules_in_which_nothing_did() -> None:
    first = Outcome(7, ended="exact", lives=2, armed={"notify:*:2:kill", "close:*:1:exit"}, faults={"notify:*:2:kill"})
    first.acts["kill-slot"] += 3
    second = Outcome(8, ended="repeated", lives=1, refusals=["RestoreError: none of the checkpoints in 'x' can be"])
    told = summary([first, second], failed=1, seconds=12.3)
    assert "3 schedules in 12 s: 1 failed, 1 exact, 1 repeated" in told
    assert "drivers started 3" in told and "faults armed 2, happened 1" in told and "refusals 1" in told
    assert "nothing happened: 1 [8]" in told
    assert "kill-slot 3/3" in told and "close exit 0/1" in told and "notify kill 1/1" in told


def test_an_error_is_known_by_its_class_and_by_those_of_its_causes() -> None:
    failed = JobExecutionError("job", "no longer the owner")
    failed.cause = Fenced("/checkpoints", 3)
    assert {"JobExecutionError", "Fenced", "CheckpointError", "EkornError"} <= {*kinds_of(failed)}
    failed.cause = UserFunctionError("sink", None, 0, None, "Traceback ...", "SinkFilesMissing")
    assert {"UserFunctionError", "SinkFilesMissing", "RestoreError"} <= {*kinds_of(failed)}
    assert "CorruptFileError" not in kinds_of(failed)
