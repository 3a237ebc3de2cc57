"""The judgement on a new plan, without a service."""

import pytest

from ekorn.common import JobStatus
from ekorn.driver.display.job_progress import JobProgress
from ekorn.service.jobs.plan_trial import TrialLimits, Verdict, judge

LIMITS = TrialLimits(restarts=3, time_ms=1000)


def progress(status=JobStatus.RUNNING, completed=0, restarts=0):
    return JobProgress(
        status=status, records_read=0, checkpoints_completed=completed, checkpoints_failed=0, restarts=restarts
    )


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
