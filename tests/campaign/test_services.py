"""The campaign with Kafka and PostgreSQL as source and sink: faults of the services too change no output."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaign.campaign import run_schedule
from tests.campaign.schedules import SERVICE_POINTS, Service, schedule, with_services
from tests.campaign.seeds import CAMPAIGN
from tests.campaign.services import Services
from tests.campaign.zygote import Zygote
from tests.servers.kafka.broker import Broker, kafka
from tests.servers.postgres import PostgresServer, postgres_server

__all__ = ["kafka", "postgres_server"]

BOTH: tuple[Service, ...] = ("kafka", "postgres")
# Short schedules: from a topic that gets another partition to rows, and from a table to a topic that is paused.
EVERY_RUN = (1249, 1184)


@pytest.mark.parametrize("seed", EVERY_RUN)
def test_faults_of_services_change_no_output(
    seed: int, tmp_path: Path, zygote: Zygote, kafka: Broker, postgres_server: PostgresServer
) -> None:
    plan = with_services(schedule(seed), BOTH)
    outcome = run_schedule(plan, tmp_path, zygote, None, Services(kafka, postgres_server))
    assert outcome.acts, "the faults happened"


@pytest.mark.parametrize("services", [("kafka",), ("postgres",), BOTH])
def test_a_seed_always_means_the_same_schedule(services: tuple[Service, ...]) -> None:
    made = [with_services(schedule(seed), services) for seed in range(50)]
    assert made == [with_services(schedule(seed), services) for seed in range(50)]
    assert made[7].command == f"python -m tests.campaign {''.join(f'--{each} ' for each in services)}7"


def test_the_schedules_cover_every_source_sink_and_fault_of_the_services() -> None:
    plans = [with_services(schedule(seed), services) for seed in CAMPAIGN for services in (BOTH[:1], BOTH[1:], BOTH)]
    ends = {(plan.source, plan.sink) for plan in plans}
    assert {("topic", "topic"), ("topic", "rows"), ("topic", "files"), ("generator", "topic")} <= ends
    assert {("table", "rows"), ("table", "topic"), ("table", "files"), ("generator", "rows")} <= ends
    acts = {act.what for plan in plans for scene in plan.scenes for act in scene.acts}
    assert acts >= {"pause-broker", "restart-broker", "restart-database", "add-partition", "kill-slot", "kill-driver"}
    points = {fault.split(":")[0] for plan in plans for scene in plan.scenes for fault in scene.faults}
    assert points >= {point for points in SERVICE_POINTS.values() for point in points}
    assert {(plan.source, plan.grows) for plan in plans} >= {(s, g) for s in ("topic", "table") for g in (True, False)}
