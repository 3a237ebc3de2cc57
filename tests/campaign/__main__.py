"""Play schedules by their seeds: `python -m tests.campaign 17 40-60`. With `-v`, print each outcome.

With `--spark` the jobs run on an embedded Spark, with `--spark --cluster` on a standalone cluster. With `--kafka` and
`--postgres` they read from the service, write to it, or both; every player has services of its own.
"""

from __future__ import annotations

import argparse
import math
import queue
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Literal

from tests.campaign.campaign import run_schedule
from tests.campaign.driver_life import CampaignFailed
from tests.campaign.outcome import Outcome, summary
from tests.campaign.schedules import (
    Edition,
    Service,
    continuous,
    in_columns,
    in_regions,
    schedule,
    unaligned,
    with_services,
)
from tests.campaign.services import Services
from tests.campaign.zygote import Zygote
from tests.s3_server import running_server, url_of
from tests.servers.kafka.broker import running_broker
from tests.servers.postgres import running_server as running_postgres


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument("seeds", nargs="+", help="numbers, or ranges such as 100-199")
    parser.add_argument("--spark", action="store_true", help="run the jobs on an embedded Spark")
    parser.add_argument("--cluster", action="store_true", help="with --spark: on a standalone cluster of its own each")
    parser.add_argument("--kafka", action="store_true", help="from Kafka, to Kafka, or both")
    parser.add_argument("--postgres", action="store_true", help="from PostgreSQL, to PostgreSQL, or both")
    parser.add_argument("--continuous", action="store_true", help="run the jobs continuously")
    parser.add_argument("--unaligned", action="store_true", help="continuously, with unaligned checkpoints")
    parser.add_argument("--regions", action="store_true", help="continuously, with a job of several regions")
    parser.add_argument("--columns", action="store_true", help="a job on columns, whose form changes between lives")
    parser.add_argument("-v", action="store_true", help="show each schedule and its outcome")
    parser.add_argument("-j", type=int, default=1, metavar="N", help="number of schedules to play at the same time")
    parser.add_argument("--minutes", type=float, help="start no further schedule after this time")
    parser.add_argument("--keep", help="folder to work in, kept afterwards")
    given = parser.parse_args()
    if given.cluster and not given.spark:
        parser.error("--cluster needs --spark")
    edition: Edition = "cluster" if given.cluster else "spark" if given.spark else "processes"
    seeds = [seed for text in given.seeds for seed in _range(text)]
    folder = Path(given.keep or tempfile.mkdtemp(prefix="campaign-"))
    folder.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    limit = started + given.minutes * 60 if given.minutes is not None else math.inf
    zygote = Zygote(on_spark=given.spark)
    wanted: list[Service] = []
    if given.kafka:
        wanted.append("kafka")
    if given.postgres:
        wanted.append("postgres")
    try:
        with ExitStack() as running, ThreadPoolExecutor(given.j) as players:
            endpoint = running.enter_context(running_server())
            free: queue.SimpleQueue[Services] = queue.SimpleQueue()
            for _ in range(given.j):
                free.put(_start(tuple(wanted), running))
            play = partial(
                _play,
                edition=edition,
                continuously=given.continuous,
                overtaking=given.unaligned,
                apart=given.regions,
                columns=given.columns,
                wanted=tuple(wanted),
                free=free,
                folder=folder,
                zygote=zygote,
                endpoint=endpoint,
                aloud=given.v,
                keep=given.keep is not None,
                limit=limit,
            )
            outcomes = list(players.map(play, seeds))
    finally:
        zygote.close()
    done = [outcome for outcome in outcomes if isinstance(outcome, Outcome)]
    failed = outcomes.count("failed")
    print(summary(done, failed=failed, seconds=time.monotonic() - started))
    if not_played := outcomes.count("not played"):
        print(f"not played, for want of time: {not_played} schedules")
    return 1 if failed else 0


def _start(wanted: tuple[Service, ...], running: ExitStack) -> Services:
    return Services(
        running.enter_context(running_broker()) if "kafka" in wanted else None,
        running.enter_context(running_postgres()) if "postgres" in wanted else None,
    )


def _play(
    seed: int,
    *,
    edition: Edition,
    continuously: bool,
    overtaking: bool,
    apart: bool,
    columns: bool,
    wanted: tuple[Service, ...],
    free: queue.SimpleQueue[Services],
    folder: Path,
    zygote: Zygote,
    endpoint: str,
    aloud: bool,
    keep: bool,
    limit: float,
) -> Outcome | Literal["failed", "not played"]:
    """Play one schedule, unless time is up; return its outcome. The files of a failed schedule are kept."""
    if time.monotonic() > limit:
        return "not played"
    plan = schedule(seed, edition)
    if wanted:
        plan = with_services(plan, wanted)
    if columns:
        plan = in_columns(plan)
    if apart:
        plan = in_regions(plan)
    elif overtaking:
        plan = unaligned(plan)
    elif continuously:
        plan = continuous(plan)
    place = Path(tempfile.mkdtemp(prefix=f"seed-{seed}-", dir=folder))
    services = free.get()
    try:
        outcome = run_schedule(plan, place, zygote, url_of(endpoint, place.name), services)
    except CampaignFailed as failed:
        print(f"seed {seed} FAILED: {failed}\nfiles: {place}", flush=True)
        return "failed"
    finally:
        free.put(services)
    if aloud:
        print(f"{plan}\n  -> {outcome}", flush=True)
    if not keep:
        shutil.rmtree(place, ignore_errors=True)  # a slot that is ending may still write files
    return outcome


def _range(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


if __name__ == "__main__":
    sys.exit(main())
