"""The autoscaler: reaches its target, stays within its bounds, and does not go back and forth."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from ekorn.config.settings.elasticity_settings import AutoscalerSettings
from ekorn.driver.rescaling.autoscaler import Autoscaler, Load, wanted_parallelism

SETTINGS = st.builds(
    AutoscalerSettings,
    target=st.floats(0.1, 1.0),
    boundary=st.floats(0.0, 0.5),
    stabilization_ms=st.just(1_000),
    window_ms=st.just(4_000),
    least=st.integers(1, 4),
    most=st.integers(4, 200),
)


def load_of(work: float, parallelism: int, *, backlog: bool = False) -> Load:
    """Return the load that some work is for a job: as many subtasks would be busy all the time."""
    return Load(min(work / parallelism, 1.0), backlog)


@given(SETTINGS, st.floats(0.0, 1.0), st.booleans(), st.integers(1, 200))
def test_parallelism_stays_within_its_bounds(settings, utilization, backlog, parallelism):
    wanted = wanted_parallelism(Load(utilization, backlog), parallelism, settings)
    assert settings.least <= wanted <= settings.most


@given(SETTINGS, st.floats(0.0, 150.0), st.integers(1, 200), st.booleans())
def test_constant_work_comes_to_rest(settings, work, parallelism, backlog):
    """A job whose sources have a backlog only grows; any other reaches a parallelism and stays there."""
    steps = [parallelism]
    for _ in range(settings.most + 2):  # a job that is busy all the time may grow by one at each step
        behind = backlog or work > steps[-1]
        steps.append(wanted_parallelism(load_of(work, steps[-1], backlog=behind), steps[-1], settings))
    assert steps[-1] == steps[-2], steps
    moves = [after - before for before, after in itertools.pairwise(steps) if after != before]
    clamped = moves[1:] if parallelism < settings.least or parallelism > settings.most else moves
    assert all(move > 0 for move in clamped) or all(move < 0 for move in clamped), steps


@given(SETTINGS, st.floats(0.0, 1.0), st.integers(1, 200))
def test_new_parallelism_leaves_the_utilization_at_its_target_or_below(settings, utilization, parallelism):
    wanted = wanted_parallelism(Load(utilization, False), parallelism, settings)
    if wanted not in (parallelism, settings.most):
        assert utilization * parallelism / wanted <= settings.target + 1e-6


@given(SETTINGS, st.floats(0.0, 1.0), st.integers(4, 200))
def test_backlog_never_makes_a_job_smaller(settings, utilization, parallelism):
    assert wanted_parallelism(Load(utilization, True), parallelism, settings) >= min(parallelism, settings.most)


def test_nothing_happens_before_the_job_has_settled_and_was_measured():
    autoscaler = Autoscaler(AutoscalerSettings(stabilization_ms=1_000, window_ms=4_000), now_ms=0)
    busy = Load(1.0, True)
    decided = {now_ms: autoscaler.observe(now_ms, busy, 2) for now_ms in range(0, 4_000, 500)}
    assert [now_ms for now_ms, decision in decided.items() if decision is not None] == [3_000, 3_500]
    decision = decided[3_000]
    assert decision is not None
    assert decision.parallelism == 3
    assert decision.reason == "it was busy 100% of the time, and its sources have a backlog"


def test_rescale_begins_a_new_measurement():
    autoscaler = Autoscaler(AutoscalerSettings(stabilization_ms=1_000, window_ms=2_000), now_ms=0)
    for now_ms in (1_000, 2_000):
        autoscaler.observe(now_ms, Load(1.0, True), 2)
    autoscaler.rescaled(2_000)
    assert [autoscaler.observe(now_ms, Load(0.65, False), 3) for now_ms in range(2_000, 8_000, 500)] == [None] * 12


def test_short_peak_is_lost_in_the_mean():
    autoscaler = Autoscaler(AutoscalerSettings(stabilization_ms=0, window_ms=10_000, boundary=0.2), now_ms=0)
    loads = [Load(0.7, False)] * 9 + [Load(1.0, True)]
    assert [autoscaler.observe(1_000 * n, load, 2) for n, load in enumerate(loads)] == [None] * 10
