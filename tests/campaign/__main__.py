"""Play schedules by their seeds: `python -m tests.campaign 17 40-60`; with `-v`, tell how each went."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.campaign.harness import CampaignFailed, run_schedule
from tests.campaign.schedules import schedule
from tests.campaign.zygote import Zygote
from tests.s3_server import running_server, url_of


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument("seeds", nargs="+", help="numbers, or ranges such as 100-199")
    parser.add_argument("-v", action="store_true", help="show each schedule and its outcome")
    parser.add_argument("--keep", help="folder to work in, kept afterwards")
    given = parser.parse_args()
    seeds = [seed for text in given.seeds for seed in _range(text)]
    folder = Path(given.keep or tempfile.mkdtemp(prefix="campaign-"))
    ended: Counter[str] = Counter()
    started = time.monotonic()
    zygote = Zygote()
    try:
        with running_server() as endpoint:
            for seed in seeds:
                plan = schedule(seed)
                if given.v:
                    print(plan, flush=True)
                folder.mkdir(parents=True, exist_ok=True)
                place = Path(tempfile.mkdtemp(prefix=f"seed-{seed}-", dir=folder))
                try:
                    outcome = run_schedule(plan, place, zygote, url_of(endpoint, place.name))
                except CampaignFailed as failed:
                    ended["FAILED"] += 1
                    print(f"seed {seed} FAILED: {failed}\nfiles: {place}", flush=True)
                    continue
                ended[outcome.ended] += 1
                if given.v:
                    print(f"  -> {outcome}", flush=True)
    finally:
        zygote.close()
    print(f"{len(seeds)} schedules in {time.monotonic() - started:.0f} s: {dict(ended)}")
    return 1 if ended["FAILED"] else 0


def _range(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


if __name__ == "__main__":
    sys.exit(main())
