"""The pacing of epochs, on simulated jobs."""

import itertools
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekorn.common import Configuration
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.driver.loop.pacing import EpochPacer, EpochReport, PacingSettings
from ekorn.driver.submit import jobs_submitted_by, submit
from ekorn.errors import ConfigurationError
from ekorn.testing.local_engine import LocalEngine


def pacing(**given):
    """Return settings with a target of a second, however many records a job processes."""
    return PacingSettings(**{"target_ms": 1_000, "latency_target_ms": None, **given})


class SimulatedJob:
    """A job with a fixed cost per epoch and a cost per record, fed at a rate or holding a backlog from the start."""

    def __init__(self, *, rate_per_s, fixed_ms=100.0, waiting=0, arriving_per_s=0.0, bytes_each=0, settings=None):
        self.rate_per_ms = rate_per_s / 1000
        self.fixed_ms = fixed_ms
        self.waiting = float(waiting)
        self.arriving_per_ms = arriving_per_s / 1000
        self.bytes_each = bytes_each
        self.pacer = EpochPacer(settings or pacing())
        self.now_ms = 0.0
        self.epochs = []  # (wall time, records, wait before the epoch)

    def run(self, epochs):
        for _ in range(epochs):
            self._pass(self.pacer.pace.idle_wait_ms)
            budget = self.pacer.pace.budget
            records = int(min(self.waiting, budget.max_records_per_source_subtask))
            backlog = int(self.waiting) > records
            self.waiting -= records
            wall_ms = self.fixed_ms + records / self.rate_per_ms
            self.epochs.append((wall_ms, records, self.pacer.pace.idle_wait_ms))
            self._pass(wall_ms)
            self.pacer.observe(EpochReport(wall_ms, records, backlog, records * self.bytes_each))
        return self

    def _pass(self, ms):
        self.now_ms += ms
        self.waiting += ms * self.arriving_per_ms


def test_the_first_epoch_is_small():
    budget = EpochPacer(pacing()).pace.budget
    assert budget.max_records_per_source_subtask == 1000
    assert budget.max_source_ms <= 50
    assert EpochPacer(pacing()).pace.idle_wait_ms == 0


def test_a_fast_job_under_backlog_reaches_nine_tenths_of_its_throughput_within_ten_epochs():
    job = SimulatedJob(rate_per_s=500_000, waiting=100_000_000).run(10)
    wall_ms, records, _ = job.epochs[-1]
    best = 500_000 * 0.9  # a target of one second leaves 900 ms for work
    assert records / wall_ms * 1000 >= 0.9 * best
    assert wall_ms <= 1_100


def test_epochs_grow_at_most_fourfold():
    job = SimulatedJob(rate_per_s=500_000, waiting=100_000_000).run(10)
    sizes = [records for _, records, _ in job.epochs]
    assert all(after <= 4 * before for before, after in itertools.pairwise(sizes))
    assert sizes[:4] == [1000, 4000, 16000, 64000]


@pytest.mark.parametrize("rate_per_s", [1_000, 200, 50])
def test_a_slow_job_keeps_its_epochs_near_the_target(rate_per_s):
    job = SimulatedJob(rate_per_s=rate_per_s, waiting=10_000_000).run(12)
    assert all(700 <= wall_ms <= 1_300 for wall_ms, _, _ in job.epochs[-5:])


@pytest.mark.parametrize(
    ("rate_per_s", "least_ms", "most_ms"), [(1_000, 450, 700), (50, 400, 700), (500_000, 1_800, 2_200)]
)
def test_the_epochs_of_a_slow_job_stay_near_the_latency_target_and_those_of_a_fast_one_do_not(
    rate_per_s, least_ms, most_ms
):
    settings = PacingSettings(target_ms=2_000, latency_target_ms=500)
    job = SimulatedJob(rate_per_s=rate_per_s, waiting=100_000_000, settings=settings).run(25)
    assert all(least_ms <= wall_ms <= most_ms for wall_ms, _, _ in job.epochs[-5:])


def test_a_latency_target_below_the_fixed_cost_still_leaves_room_for_work():
    settings = PacingSettings(target_ms=2_000, latency_target_ms=60)
    job = SimulatedJob(rate_per_s=1_000, waiting=1_000_000, settings=settings).run(30)
    assert job.epochs[-1][1] >= 25


def test_a_latency_target_of_nothing_is_refused():
    with pytest.raises(ConfigurationError, match="latency_target_ms"):
        PacingSettings(latency_target_ms=0)


def test_a_job_that_becomes_slower_comes_back_to_the_target():
    job = SimulatedJob(rate_per_s=500_000, waiting=100_000_000).run(10)
    job.rate_per_ms /= 10
    job.run(4)
    assert 800 <= job.epochs[-1][0] <= 1_200


def test_under_backlog_there_is_no_waiting():
    job = SimulatedJob(rate_per_s=10_000, waiting=10_000_000).run(10)
    assert all(wait_ms == 0 for _, _, wait_ms in job.epochs)


def test_an_idle_job_waits_a_little_longer_each_time_up_to_a_limit():
    job = SimulatedJob(rate_per_s=500_000).run(6)
    assert [wait_ms for _, _, wait_ms in job.epochs] == [0, 10, 20, 40, 50, 50]


def test_the_first_record_after_a_quiet_time_ends_the_long_waits():
    job = SimulatedJob(rate_per_s=500_000).run(6)
    job.waiting = 5
    job.run(2)
    assert job.epochs[-1][2] == 10


def test_a_trickle_is_taken_as_it_comes():
    job = SimulatedJob(rate_per_s=500_000, arriving_per_s=1_000).run(50)
    assert all(wall_ms < 110 for wall_ms, _, _ in job.epochs)
    assert job.waiting < 200


def test_a_steady_stream_below_capacity_never_falls_behind():
    job = SimulatedJob(rate_per_s=500_000, arriving_per_s=300_000).run(60)
    behind_ms = job.waiting / job.arriving_per_ms
    assert behind_ms < 1_500
    assert job.epochs[-1][0] < 1_200


def test_after_a_burst_the_budget_is_for_tens_of_milliseconds_again():
    job = SimulatedJob(rate_per_s=500_000, waiting=3_000_000).run(20)
    assert job.waiting == 0
    budget = job.pacer.pace.budget
    assert 1000 <= budget.max_records_per_source_subtask <= 500 * 60
    assert budget.max_source_ms <= 50
    job.waiting = 10_000_000
    job.run(1)
    assert job.epochs[-1][0] < 250  # the first results of the next burst come early
    job.run(4)
    assert job.epochs[-1][0] > 800  # and the epochs grow soon


def test_an_epoch_does_not_outlast_the_checkpoint_interval():
    settings = pacing(checkpoint_interval_ms=300)
    job = SimulatedJob(rate_per_s=100_000, waiting=100_000_000, settings=settings).run(15)
    assert all(wall_ms <= 310 for wall_ms, _, _ in job.epochs[-5:])
    assert settings.effective_target_ms == 300


@pytest.mark.parametrize("interval_ms", [10, 49, 50])
def test_a_target_has_a_floor(interval_ms):
    assert pacing(checkpoint_interval_ms=interval_ms).effective_target_ms == 50


def test_a_target_below_the_fixed_cost_still_leaves_room_for_work():
    settings = pacing(checkpoint_interval_ms=50)
    job = SimulatedJob(rate_per_s=100_000, waiting=100_000_000, settings=settings).run(30)
    assert job.epochs[-1][1] >= 2_000


def test_bytes_bound_the_epoch_and_the_budget_does_not_run_away():
    settings = pacing(max_bytes=1 << 20)
    job = SimulatedJob(rate_per_s=1_000_000, waiting=100_000_000, bytes_each=1024, settings=settings).run(30)
    assert job.epochs[-1][1] == 1024
    assert job.pacer.pace.budget.max_records_per_source_subtask <= 1024


def test_bytes_bound_the_budget_of_sources_that_time_stops_early():
    pacer = EpochPacer(pacing(max_bytes=1 << 20))
    pacer.observe(EpochReport(wall_ms=150, records=400, backlog=True, bytes_read=400 << 13))
    assert pacer.pace.budget.max_records_per_source_subtask == 128


class EpochsSeen(LocalEngine):
    """Keeps the limits of each epoch, and what its sources read and sent."""

    seen: list[tuple[int, int, int]] = []

    def run_epoch(self, order):
        result = super().run_epoch(order)
        sources = [ack for ack in result.acks if self._graph.vertices[ack.vertex].is_source]
        records, sent = sum(ack.records_in for ack in sources), sum(ack.bytes_out for ack in sources)
        EpochsSeen.seen.append((order.max_records, records, sent))
        return result


def test_a_job_with_large_records_keeps_its_epochs_within_the_bytes():
    EpochsSeen.seen.clear()
    configuration = Configuration()
    configuration.set_string("ekorn.epoch.source-bytes", "1mb")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(1)
    large = env.from_collection(range(3000)).map(lambda n: f"{n:010d}" * 1000).rebalance().map(len)
    with (
        jobs_submitted_by(partial(submit, engine_for=lambda settings: EpochsSeen)),
        large.execute_and_collect() as lengths,
    ):
        assert sum(1 for _ in lengths) == 3000
    limits = [limit for limit, _, _ in EpochsSeen.seen]
    assert sum(records for _, records, _ in EpochsSeen.seen) == 3000
    assert len(limits) > 10, "an epoch has about a hundred of these records"
    assert max(limits[1:]) <= 105


def test_a_job_that_collects_much_keeps_its_epochs_within_the_bytes():
    EpochsSeen.seen.clear()
    configuration = Configuration()
    configuration.set_string("ekorn.epoch.source-bytes", "1mb")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(1)
    large = env.from_collection(range(3000)).map(lambda n: f"{n:010d}" * 1000)
    with (
        jobs_submitted_by(partial(submit, engine_for=lambda settings: EpochsSeen)),
        large.execute_and_collect() as texts,
    ):
        assert sum(1 for _ in texts) == 3000
    assert max(limit for limit, _, _ in EpochsSeen.seen[1:]) <= 105


def test_a_source_stopped_by_time_does_not_make_the_record_budget_run_away():
    pacer = EpochPacer(pacing())
    for _ in range(30):
        pacer.observe(EpochReport(wall_ms=150, records=100, backlog=True))
    assert pacer.pace.budget.max_records_per_source_subtask == 1000
    assert pacer.pace.budget.max_source_ms > 500


def test_the_fixed_cost_is_learnt_on_a_slow_cluster_and_on_a_fast_engine():
    slow = SimulatedJob(rate_per_s=500_000, fixed_ms=400)
    slow.run(20)
    slow.waiting = 100_000_000
    slow.run(12)
    assert 900 <= slow.epochs[-1][0] <= 1_100
    fast = SimulatedJob(rate_per_s=500_000, fixed_ms=0.5, waiting=100_000_000).run(12)
    assert 900 <= fast.epochs[-1][0] <= 1_100


@pytest.mark.parametrize("wrong", [{"target_ms": 0}, {"max_bytes": 0}])
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        PacingSettings(**wrong)


@given(
    st.lists(
        st.builds(
            EpochReport,
            wall_ms=st.floats(0, 1e6),
            records=st.integers(0, 10**9),
            backlog=st.booleans(),
            bytes_read=st.integers(0, 10**12),
        ),
        max_size=40,
    )
)
def test_no_measurements_lead_to_a_budget_out_of_bounds(reports):
    pacer = EpochPacer(pacing())
    for report in reports:
        before = pacer.pace.budget.max_records_per_source_subtask
        pace = pacer.observe(report)
        assert 1 <= pace.budget.max_records_per_source_subtask <= 10_000_000
        assert pace.budget.max_records_per_source_subtask <= max(4 * before, 1000)
        assert 25 <= pace.budget.max_source_ms <= 1_000
        assert 0 <= pace.idle_wait_ms <= 50
        assert pace.idle_wait_ms == 0 or not report.backlog


@pytest.mark.parametrize("fixed_ms", [250, 400, 800, 1_500])
@pytest.mark.parametrize("interval_ms", [200, None])
def test_a_fixed_cost_above_the_target_does_not_shrink_epochs_to_nothing(fixed_ms, interval_ms):
    settings = pacing(checkpoint_interval_ms=interval_ms)
    job = SimulatedJob(rate_per_s=100_000, fixed_ms=fixed_ms, waiting=1_000_000_000, settings=settings).run(40)
    work_ms = [wall_ms - fixed_ms for wall_ms, _, _ in job.epochs[-10:]]
    assert min(work_ms) >= settings.effective_target_ms / 4


def test_a_slow_function_still_shortens_its_epochs():
    job = SimulatedJob(rate_per_s=100, fixed_ms=100, waiting=1_000_000).run(30)
    assert all(wall_ms <= 1_500 for wall_ms, _, _ in job.epochs[-10:])


@pytest.mark.parametrize(("spread", "fixed_ms"), [(0.05, 100), (0.145, 100), (0.155, 300), (0.3, 300)])
def test_the_fixed_cost_is_learnt_from_epochs_of_different_size_only(spread, fixed_ms):
    """An epoch costs 300 ms and 5 ms per thousand records; 100 ms are the first guess."""
    pacer = EpochPacer(pacing(target_ms=1_000))
    for number in range(20):
        records = round(100_000 * (1 + spread * (-1) ** number))
        pacer.observe(EpochReport(wall_ms=300 + records / 200, records=records, backlog=True))
    assert pacer.pace.budget.max_source_ms == 1_000 - fixed_ms
