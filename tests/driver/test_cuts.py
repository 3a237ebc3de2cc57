"""The cuts of checkpoints: up to where the output of a job is committed with each of them."""

import pytest

from ekorn.driver.checkpoints.cuts import Cut, Cuts
from ekorn.graph.addresses import SubtaskId

SOURCE = SubtaskId(0, 0)
BEFORE, AFTER = Cut(1, {SOURCE: 10}), Cut(2, {SOURCE: 20})


def no_savepoint(checkpoint_id):
    return False


def test_a_checkpoint_commits_up_to_the_end_of_the_epoch_that_carried_it():
    cuts = Cuts()
    cuts.begin(1, BEFORE)
    cuts.place(1, AFTER)
    assert cuts.take_completed(1, no_savepoint) == AFTER
    with pytest.raises(KeyError):
        cuts.take_completed(1, no_savepoint)


def test_a_checkpoint_that_was_aborted_during_its_epoch_stays_forgotten():
    cuts = Cuts()
    cuts.begin(1, BEFORE)
    cuts.drop(1)
    cuts.drop(1)
    cuts.place(1, AFTER)
    with pytest.raises(KeyError):
        cuts.take_savepoint(1)


def test_a_completed_checkpoint_subsumes_older_checkpoints_and_no_savepoint():
    cuts = Cuts()
    for number in (1, 2, 3, 4):
        cuts.begin(number, Cut(number, {SOURCE: number}))
    cuts.keep_savepoint(0, BEFORE)
    assert cuts.take_completed(3, lambda checkpoint_id: checkpoint_id == 2) == Cut(3, {SOURCE: 3})
    assert cuts.take_savepoint(2) == Cut(2, {SOURCE: 2})
    assert cuts.take_completed(4, no_savepoint) == Cut(4, {SOURCE: 4})
    with pytest.raises(KeyError):
        cuts.take_completed(1, no_savepoint)


def test_the_cut_of_a_savepoint_is_kept_until_a_newer_checkpoint_completes():
    cuts = Cuts()
    cuts.keep_savepoint(2, AFTER)
    assert cuts.of_savepoint(2) == AFTER
    assert cuts.of_savepoint(1) is cuts.of_savepoint(None) is None
    cuts.begin(1, BEFORE)
    cuts.take_completed(1, no_savepoint)
    assert cuts.of_savepoint(2) == AFTER
    cuts.begin(3, BEFORE)
    cuts.take_completed(3, no_savepoint)
    assert cuts.of_savepoint(2) is None
