"""What drivers that have ended had said of their jobs is read once, wherever it is kept."""

from dataclasses import replace

import pytest

from ekorn.service.api.job_overviews import JobOverviews
from ekorn.service.jobs.job_record import JobRecord
from ekorn.service.jobs.job_store import JobStore

ENDED = JobRecord("0" * 32, "count", "p.zip", "p.py", phase="ENDED", status="FINISHED", ended_ms=5)


class CountedStore(JobStore):
    """Counts how often answers are read, and gives them a number that grows."""

    reads = 0

    def answers(self, job_id):
        self.reads += 1
        return {"/jobs/overview": {"jobs": [{"jid": job_id, "state": "FINISHED", "duration": self.reads}]}}


@pytest.fixture
def store(tmp_path):
    return CountedStore(str(tmp_path / "service"))


def duration(overviews, record):
    return overviews.of(record)["duration"]


def test_the_last_reports_of_a_driver_are_read_once(store):
    overviews = JobOverviews(store)
    assert [duration(overviews, ENDED) for _ in range(3)] == [1, 1, 1]
    assert store.reads == 1


def test_a_job_that_was_submitted_again_and_a_job_that_is_forgotten_are_read_again(store):
    overviews = JobOverviews(store)
    overviews.of(ENDED)
    assert duration(overviews, replace(ENDED, ended_ms=9)) == 2
    overviews.forget(ENDED.job_id)
    assert duration(overviews, replace(ENDED, ended_ms=9)) == 3


def test_the_words_of_a_job_whose_end_is_only_being_noted_are_not_remembered(store):
    overviews = JobOverviews(store)
    assert [duration(overviews, replace(ENDED, ended_ms=0)) for _ in range(2)] == [1, 2]
