"""Jobs in slot processes are rescaled while they run: slots start and end, and every result comes once."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from ekorn.errors import RescaleError
from ekorn.testing.process_engine import on_process_engine
from tests.live_jobs import Held, environment, expected_tally, generated, is_running, tallied, until

KEYS, RECORDS = 11, 3_000


def started(directory: Path, parallelism: int):
    """Start a job that ends once its records are let go."""
    env, held = environment(directory, parallelism=parallelism, restarts=5), Held(directory, RECORDS // 10, 400.0)
    results = tallied(generated(env, RECORDS, held), KEYS).execute_and_collect("rescaled")
    return results, results.job_client, held


@pytest.mark.parametrize("registering", [False, True], ids=["children", "registering"])
@pytest.mark.parametrize("continuous", [False, True], ids=["epochs", "continuous"])
def test_slots_come_and_go_with_the_parallelism(tmp_path: Path, *, continuous: bool, registering: bool) -> None:
    with on_process_engine(continuous=continuous, registering=registering):
        results, client, held = started(tmp_path, 1)
        until(lambda: client.get_progress().records_read > 100)
        first = client.get_progress().slot_pids
        client.rescale(3).result(60)
        grown = client.get_progress().slot_pids
        assert len(grown) == 3 and grown[0] == first[0], "the slots in use stay"
        client.rescale(2).result(60)
        assert client.get_progress().slot_pids == grown[:2]
        until(lambda: not is_running(grown[2]))
        held.let_go()
        assert sorted(results) == sorted(expected_tally(RECORDS, KEYS))
        assert client.get_progress().restarts == 0


def test_rescale_that_is_refused_leaves_no_slot_behind(tmp_path: Path) -> None:
    with on_process_engine():
        results, client, held = started(tmp_path, 2)
        until(lambda: client.get_progress().records_read > 100)
        with pytest.raises(RescaleError, match="above its max parallelism"):
            client.rescale(1_000).result(60)
        assert len(client.get_progress().slot_pids) == 2
        held.let_go()
        assert sorted(results) == sorted(expected_tally(RECORDS, KEYS))


@pytest.mark.parametrize(
    "point", ["restore", "close", *[pytest.param(each, marks=pytest.mark.soak) for each in ("deploy", "restored")]]
)
def test_slot_that_is_killed_during_the_switch_costs_no_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """The first `deploy` is that of the start; everything else happens at the switch alone."""
    folder = tmp_path / "faults"
    folder.mkdir()
    monkeypatch.setenv("EKORN_FAULT_DIR", str(folder))
    monkeypatch.setenv("EKORN_FAULT", f"{point}:0:{2 if point == 'deploy' else 1}:kill")
    with on_process_engine():
        results, client, held = started(tmp_path / "job", 2)
        until(lambda: client.get_progress().records_read > 100)
        outcome = client.rescale(3).exception()
        assert os.listdir(folder), "the slot was killed"
        assert isinstance(outcome, RescaleError)
        held.let_go()
        assert sorted(results) == sorted(expected_tally(RECORDS, KEYS))
        assert len(client.get_progress().slot_pids) in (0, 2)


@pytest.mark.parametrize("continuous", [False, True], ids=["epochs", "continuous"])
@pytest.mark.parametrize(
    ("slot", "what", "succeeds"),
    [(0, "kill", False), (2, "kill", True), (0, "error", True), (2, "error", True)],
    ids=["slot in use dies", "spare slot dies", "slot in use fails", "spare slot fails"],
)
def test_slot_that_does_not_come_to_read_state_in_advance_costs_no_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, slot: int, what: str, succeeds: bool, continuous: bool
) -> None:
    folder = tmp_path / "faults"
    folder.mkdir()
    monkeypatch.setenv("EKORN_FAULT_DIR", str(folder))
    monkeypatch.setenv("EKORN_FAULT", f"preload:{slot}:1:{what}")
    with on_process_engine(continuous=continuous):
        results, client, held = started(tmp_path / "job", 2)
        until(lambda: client.get_progress().records_read > 100)
        outcome = client.rescale(3).exception(60)
        assert os.listdir(folder), "the fault has happened"
        assert (outcome is None) is succeeds
        held.let_go()
        assert sorted(results) == sorted(expected_tally(RECORDS, KEYS))


def test_spare_slot_that_is_lost_before_the_switch_is_replaced(tmp_path: Path) -> None:
    """Spare slots are started while the job runs: the loss of one is no failure of the job."""
    with on_process_engine():
        results, client, held = started(tmp_path, 1)
        until(lambda: client.get_progress().records_read > 100)
        client.rescale(2).result(60)
        os.kill(client.get_progress().slot_pids[1], signal.SIGKILL)
        held.let_go()
        assert sorted(results) == sorted(expected_tally(RECORDS, KEYS))
