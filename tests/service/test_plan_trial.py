"""The judgement on a new plan, without a service."""

import pytest

from ekorn.clock import ManualClock
from ekorn.common import JobStatus
from ekorn.driver.display.job_progress import JobProgress
from ekorn.service.jobs import plan_trial
from ekorn.service.jobs.job_record import JobRecord
from ekorn.service.jobs.plan_trial import PlanTrials, TrialLimits, Verdict, judge

LIMITS = TrialLimits(restarts=3, time_ms=1000)


def progress(status=JobStatus.RUNNING, completed=0, restarts=0):
    return JobProgress(
        status=status, records_read=0, checkpoints_completed=completed, checkpoints_failed=0, restarts=restarts
    )


class SilentJob:
    """A driver on trial that runs, and neither restarts nor completes a checkpoint."""

    def progress(self):
        return progress()

    def takes_checkpoints(self):
        return True

    def trigger_checkpoint(self):
        pass


def test_a_clock_that_is_set_neither_ends_nor_prolongs_a_trial(monkeypatch):
    monkeypatch.setattr(plan_trial, "driver_client", lambda record, answer_s: None)
    monkeypatch.setattr(plan_trial, "RemoteJob", lambda client, job_id: SilentJob())
    clock = ManualClock(now_ms=10_000_000)
    trials = PlanTrials(LIMITS, clock)
    record = JobRecord("j", "job", "program", "job.py", pid=1, trial_ms=clock.now_ms())
    assert trials.verdict(record)[0] is Verdict.UNDECIDED
    clock.set_ms(13_600_000)
    assert trials.verdict(record)[0] is Verdict.UNDECIDED
    clock.set_ms(0)
    clock.advance(999)
    assert trials.verdict(record)[0] is Verdict.UNDECIDED
    clock.advance(1)
    assert trials.verdict(record) == (Verdict.TOO_LATE, "it completed no checkpoint within 1 s")


@pytest.mark.parametrize(
    ("seen", "ran_ms", "verdict"),
    [
        (progress(), 0, Verdict.UNDECIDED),
        (progress(restarts=2), 999, Verdict.UNDECIDED),
        (progress(restarts=3), 0, Verdict.RESTARTS),
        (progress(), 1000, Verdict.TOO_LATE),
        # Once a checkpoint is complete, sinks may have committed results of the new plan: there is no way back.
        (progress(completed=1, restarts=9), 5000, Verdict.KEEP),
        (progress(JobStatus.FINISHED), 5000, Verdict.KEEP),
    ],
)
def test_a_plan_is_kept_after_a_checkpoint_and_given_up_after_restarts_or_time(seen, ran_ms, verdict):
    assert judge(seen, ran_ms, LIMITS) is verdict
