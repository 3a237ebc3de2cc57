"""The rules of pacing, one by one: what each measurement does to the next epoch. `test_pacing.py` has whole jobs."""

import pickle
from itertools import pairwise

import pytest

from ekorn.driver.loop.continuous_mode import MarkPacer
from ekorn.driver.loop.pacing import EpochBudget, EpochPacer, EpochReport, PacingSettings

MAX_BYTES = 64 << 20
QUIET = (100, 0, False)  # an epoch that takes as long as the pacer guesses, and teaches it nothing


def paced(*reports, **settings):
    """Return the pace after these epochs, each given as (wall_ms, records, backlog). The target is a second."""
    pacer = EpochPacer(PacingSettings(**{"target_ms": 1_000, "latency_target_ms": None, **settings}))
    for report in reports:
        pacer.observe(EpochReport(*report))
    return pacer.pace


def under_backlog(records, source_ms):
    return EpochBudget(records, source_ms, MAX_BYTES)


def test_the_first_epoch_reads_a_thousand_records_at_once():
    assert EpochPacer().pace.budget == EpochBudget(1_000, 50, MAX_BYTES)


def test_a_first_epoch_that_starts_the_workers_of_spark_teaches_nothing():
    first = EpochPacer().pace.budget
    assert paced((4_071, 1_000, True)).budget == first
    assert paced((4_071, 1_000, True), (550, 1_000, True)).budget == paced((550, 1_000, True)).budget
    assert paced((1_001, 1_000, True)).budget == first
    assert paced((1_000, 1_000, True)).budget == under_backlog(1_000, 900), "within the target it counts"
    assert paced((4_071, 1_000, True), (4_071, 1_000, True)).budget != first, "a second one counts"


def test_records_follow_the_time_that_is_left_for_work_beside_the_guessed_fixed_cost():
    assert paced(QUIET, (1_100, 1_000, True)).budget == under_backlog(
        900, 900
    )  # a second of work, of which 900 ms are allowed
    assert paced(QUIET, (550, 1_000, True)).budget == under_backlog(2_000, 900)


def test_a_budget_changes_at_most_fourfold_in_either_direction():
    assert paced(QUIET, (100_100, 1_000, True)).budget == under_backlog(250, 900)
    assert paced(QUIET, (101, 1_000, True)).budget == under_backlog(4_000, 900)


@pytest.mark.parametrize(("records", "budget"), [(499, 1_000), (500, 4_000)])
def test_sources_that_stopped_before_half_of_their_budget_do_not_make_it_grow(records, budget):
    assert paced((110, records, True)).budget == under_backlog(budget, 900)


def test_sources_that_stopped_early_make_a_budget_shrink_that_took_too_long():
    assert paced(QUIET, (1_900, 10, True)).budget == under_backlog(500, 900)


def test_an_empty_epoch_teaches_three_tenths_of_the_difference_to_the_fixed_cost():
    assert paced((200, 0, False), (1_130, 1_000, True)).budget == under_backlog(870, 870)
    assert paced((50, 0, False), (1_050, 1_000, True)).budget == under_backlog(950, 950)  # never above the whole cost


def test_an_epoch_with_some_records_says_only_that_the_fixed_cost_is_not_higher():
    assert paced((200, 5, False), (1_100, 1_000, True)).budget == under_backlog(900, 900)
    assert paced((40, 5, False), (1_040, 1_000, True)).budget == under_backlog(960, 960)


def test_half_of_the_target_is_left_for_work_where_the_fixed_cost_takes_more():
    assert paced((150, 1_000, True), target_ms=100).budget == under_backlog(1_000, 50)
    assert paced((150, 1_000, True), target_ms=160).budget == under_backlog(1_600, 80)


def test_without_backlog_a_budget_is_for_fifty_milliseconds_of_work():
    burst = [(110, 1_000, True), (140, 4_000, True)]  # a hundred records a millisecond
    assert paced(*burst).budget == under_backlog(16_000, 900)
    quiet = paced(*burst, (100, 3, False))
    assert (quiet.budget, quiet.idle_wait_ms) == (EpochBudget(5_000, 50, MAX_BYTES), 10)
    assert paced(burst[0], (100, 3, False)).budget == EpochBudget(4_000, 50, MAX_BYTES)


def test_without_backlog_a_budget_does_not_fall_below_the_first():
    assert paced((200, 1_000, True)).budget.max_records_per_source_subtask == 4_000
    assert paced((200, 1_000, True), (100, 3, False)).budget.max_records_per_source_subtask == 1_000


def fixed_cost(points):
    """Return the height at zero of the line of least squares; each point weighs nine tenths of the one after it."""
    weights = [0.9 ** (len(points) - 1 - at) for at in range(len(points))]
    mean_x, mean_y = (sum(w * p[i] for w, p in zip(weights, points, strict=True)) / sum(weights) for i in (0, 1))
    above = sum(w * (x - mean_x) * (y - mean_y) for w, (x, y) in zip(weights, points, strict=True))
    below = sum(w * (x - mean_x) ** 2 for w, (x, y) in zip(weights, points, strict=True))
    return mean_y - above / below * mean_x


LINE = [(1_000, 110), (4_000, 140)]  # records and milliseconds: a hundred, and one more for each hundred records


@pytest.mark.parametrize("third", [(20_000, 449), (20_000, 350), (20_000, 250), (20_000, 201)])
def test_the_fixed_cost_is_that_of_a_line_through_the_epochs_with_older_ones_weighing_less(third):
    points = [*LINE, third]
    source_ms = 1_000 - max(0.0, fixed_cost(points))
    assert abs(source_ms - 900) > 1
    reports = [(wall_ms, records, True) for records, wall_ms in points]
    assert paced(*reports).budget.max_source_ms == pytest.approx(source_ms, abs=0.51)


@pytest.mark.parametrize("wall_ms", [451, 199])
def test_an_epoch_that_took_half_again_as_long_as_the_line_says_begins_a_new_line(wall_ms):
    reports = [(wall_ms, records, True) for records, wall_ms in [*LINE, (20_000, wall_ms)]]
    assert paced(*reports).budget.max_source_ms == 900  # what the line said before
    later = [(20_000, wall_ms), (40_000, wall_ms + 100)]
    reports += [(wall_ms, records, True) for records, wall_ms in later[1:]]
    assert paced(*reports).budget.max_source_ms == pytest.approx(1_000 - fixed_cost(later), abs=0.51)


def test_a_line_that_falls_says_that_records_cost_nothing():
    points = [(1_000, 400), (4_000, 350)]
    mean_ms = (0.9 * 400 + 350) / 1.9
    reports = [(wall_ms, records, True) for records, wall_ms in points]
    assert paced(*reports).budget.max_source_ms == round(1_000 - min(mean_ms, 350))


def test_settings_of_one_are_the_smallest():
    assert PacingSettings(target_ms=1, max_bytes=1).effective_target_ms == 50


def test_waits_grow_while_nothing_comes_and_begin_anew_after_records_or_a_backlog():
    reports = [(100, 0, False)] * 4 + [(100, 5, False), (100, 0, False), (100, 9, True), (100, 0, False)]
    waits = [paced(*reports[:count]).idle_wait_ms for count in range(len(reports) + 1)]
    assert waits == [0, 10, 20, 40, 50, 10, 20, 0, 10]
    assert all(after <= 2 * before or before == 0 for before, after in pairwise(waits))


def test_the_pacer_of_marks_takes_no_more_memory_after_days():
    pacer, young = MarkPacer(200), len(pickle.dumps(MarkPacer(200)))
    assert {pacer.next_ms() for _ in range(10_000)} == {10, 20, 40, 80, 160, 200}
    assert len(pickle.dumps(pacer)) < young + 10
