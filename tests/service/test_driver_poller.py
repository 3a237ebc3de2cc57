"""Polls of drivers: in parallel, shared by the clients that wait, and never older than the question."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from ekorn.errors import EkornError
from ekorn.service.api import driver_poller
from ekorn.service.api.driver_poller import DriverPoller, driver_client
from ekorn.service.jobs.job_record import JobRecord
from tests.live_jobs import until

RECORDS = [JobRecord(f"{n:032x}", "job", "p", "job.py", phase="STARTED", socket=f"/s{n}") for n in range(4)]


class Drivers:
    """Answer with the number of the poll, once they may."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.go = threading.Event()
        self.go.set()
        self.hanging: set[str] = set()

    def client(self, record: JobRecord, timeout_s: float) -> Any:
        def get(path: str) -> str:
            self.asked.append(record.socket)
            assert path == "/jobs/overview" and self.go.wait(60)
            if record.socket in self.hanging:
                raise EkornError("no answer")
            return f"{record.socket} at {self.asked.count(record.socket)}"

        return SimpleNamespace(get=get)


@pytest.fixture
def drivers(monkeypatch: pytest.MonkeyPatch) -> Drivers:
    made = Drivers()
    monkeypatch.setattr(driver_poller, "driver_client", made.client)
    return made


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that moves on with each look at it."""
    now_s = [0.0]

    def monotonic() -> float:
        now_s[0] += 1.0
        return now_s[0]

    monkeypatch.setattr(driver_poller, "time", SimpleNamespace(monotonic=monotonic))
    return now_s


def test_each_question_is_asked_anew(drivers: Drivers, clock: list[float]) -> None:
    poller = DriverPoller("/jobs/overview")
    for number in (1, 2):
        found = poller.answers(RECORDS[:2])
        assert found == {RECORDS[n].job_id: f"/s{n} at {number}" for n in (0, 1)}


@pytest.mark.parametrize("count", [0, 1])
def test_a_single_driver_is_asked_directly(drivers: Drivers, count: int) -> None:
    poller = DriverPoller("/jobs/overview")
    assert poller.answers(RECORDS[:count]) == {each.job_id: "/s0 at 1" for each in RECORDS[:count]}


def test_a_driver_that_gives_no_answer_is_none_and_delays_no_other(drivers: Drivers) -> None:
    drivers.hanging = {"/s1"}
    found = DriverPoller("/jobs/overview").answers(RECORDS[:3])
    assert found == {RECORDS[0].job_id: "/s0 at 1", RECORDS[1].job_id: None, RECORDS[2].job_id: "/s2 at 1"}


@pytest.mark.parametrize(("wanted", "polls"), [(RECORDS[:2], 2), (RECORDS[1:3], 3)])
def test_those_who_ask_during_a_poll_share_the_next_one_if_it_is_about_their_jobs(
    drivers: Drivers, clock: list[float], wanted: list[JobRecord], polls: int
) -> None:
    poller, found = DriverPoller("/jobs/overview"), list[dict[str, Any]]()

    def ask(records: list[JobRecord]) -> threading.Thread:
        thread = threading.Thread(target=lambda: found.append(poller.answers(records)), daemon=True)
        thread.start()
        return thread

    drivers.go.clear()
    threads = [ask(RECORDS[:2])]
    until(lambda: len(drivers.asked) == 2)
    before = clock[0]
    threads += [ask(RECORDS[:2])]
    until(lambda: clock[0] == before + 1)  # it has asked, and waits
    threads += [ask(wanted)]
    until(lambda: clock[0] == before + 2)
    drivers.go.set()
    for thread in threads:
        thread.join(60)
    assert len(found) == 3
    keys = sorted(sorted(answers) for answers in found)
    assert keys == sorted(sorted(each.job_id for each in records) for records in (RECORDS[:2], RECORDS[:2], wanted))
    assert drivers.asked.count("/s1") == polls


def test_the_client_of_a_driver_asks_at_its_socket() -> None:
    assert driver_client(RECORDS[3]).address == "unix:/s3"
