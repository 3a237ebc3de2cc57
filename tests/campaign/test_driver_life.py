"""How the campaign waits for a driver that a fault has stopped."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from tests.campaign.driver import Run
from tests.campaign.driver_life import CampaignFailed, Driver
from tests.campaign.zygote import Zygote
from tests.live_jobs import until


class ProcessThatDoesNothing:
    """Stands in for the zygote: the driver reports nothing and does not end."""

    def __init__(self) -> None:
        self.process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)

    def fork(self, arguments: str, environment: dict[str, str], output: Path, log: Path) -> int:
        return self.process.pid

    def how_it_ended(self, pid: int, within_s: float = 0.0) -> int | None:
        return self.process.poll()


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Driver]:
    stand_in = ProcessThatDoesNothing()
    driver = Driver(cast(Zygote, stand_in), Run("allround", 1, 1.0, "out", "checkpoints"), tmp_path, {})
    driver.patience_s = 0.3
    try:
        yield driver
    finally:
        stand_in.process.kill()
        stand_in.process.communicate()


def test_campaign_does_not_wait_for_the_checkpoint_of_a_stopped_driver(driver: Driver) -> None:
    driver.kill(signal.SIGSTOP)
    until(driver.is_stopped)
    driver.until_first_checkpoint()


def test_driver_that_runs_without_a_checkpoint_has_made_no_progress(driver: Driver) -> None:
    with pytest.raises(CampaignFailed, match="made no progress"):
        driver.until_first_checkpoint()
