"""The progress of a job as facts: what differs from a job that has not begun."""

from ekorn.common import JobStatus
from ekorn.driver.display.job_progress import JobProgress, html_table


def test_a_job_that_has_not_begun_has_a_status_and_nothing_else():
    assert list(JobProgress().facts()) == [("status", "CREATED")]


def test_what_has_happened_is_told_in_words():
    progress = JobProgress(
        status=JobStatus.RUNNING, epochs=3, last_epoch_ms=12.345, last_failure="no <price>", watermark=86_400_000
    )
    facts = dict(progress.facts())
    assert list(facts) == ["status", "epochs", "last_epoch_ms", "last_failure", "watermark"]
    assert (facts["epochs"], facts["last_epoch_ms"], facts["last_failure"]) == ("3", "12.3", "'no <price>'")
    assert facts["watermark"] != "86400000", "a time is shown as a time"
    table = html_table(progress.facts())
    assert "no &lt;price&gt;" in table and "last epoch ms" in table and table.count("<tr>") == 5
