"""The campaign with a database as the sink: every row is in the table once, whatever is killed, stopped or damaged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.campaign.campaign import run_schedule
from tests.campaign.schedules import schedule
from tests.campaign.seeds import CAMPAIGN, EVERY_RUN
from tests.campaign.services import Services
from tests.campaign.zygote import Zygote
from tests.servers.postgres import PostgresServer, postgres_server

__all__ = ["postgres_server"]


def with_transactions(seeds: range | tuple[int, ...], count: int) -> list[int]:
    """Return seeds of schedules that kill a sink with transactions at all of its steps, without an S3 server."""
    plans = [schedule(seed) for seed in seeds]
    return [plan.seed for plan in plans if plan.sink == "two-phase" and plan.storage != "s3"][:count]


@pytest.mark.parametrize(
    "seed",
    [
        *with_transactions(EVERY_RUN, 2),
        *(pytest.param(seed, marks=pytest.mark.soak) for seed in with_transactions(CAMPAIGN, 100)),
    ],
)
def test_faults_change_no_row(
    seed: int,
    tmp_path: Path,
    zygote: Zygote,
    postgres_server: PostgresServer,
) -> None:
    plan = replace(schedule(seed), sink="rows", services=("postgres",))
    run_schedule(plan, tmp_path, zygote, None, Services(postgres=postgres_server))
