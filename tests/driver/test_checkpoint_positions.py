"""The positions of checkpoints: up to where the output of a job is committed with each of them."""

import pytest

from ekorn.driver.checkpoints.checkpoint_positions import CheckpointPosition, CheckpointPositions
from ekorn.graph.addresses import SubtaskId

SOURCE = SubtaskId(0, 0)
BEFORE, AFTER = CheckpointPosition(1, {SOURCE: 10}), CheckpointPosition(2, {SOURCE: 20})


def no_savepoint(checkpoint_id):
    return False


def test_a_checkpoint_commits_up_to_the_end_of_the_epoch_that_carried_it():
    positions = CheckpointPositions()
    positions.begin(1, BEFORE)
    positions.update(1, AFTER)
    assert positions.take_completed(1, no_savepoint) == AFTER
    with pytest.raises(KeyError):
        positions.take_completed(1, no_savepoint)


def test_a_checkpoint_that_was_aborted_during_its_epoch_stays_forgotten():
    positions = CheckpointPositions()
    positions.begin(1, BEFORE)
    positions.drop(1)
    positions.drop(1)
    positions.update(1, AFTER)
    with pytest.raises(KeyError):
        positions.take_savepoint(1)


def test_a_completed_checkpoint_subsumes_older_checkpoints_and_no_savepoint():
    positions = CheckpointPositions()
    for number in (1, 2, 3, 4):
        positions.begin(number, CheckpointPosition(number, {SOURCE: number}))
    positions.keep_savepoint(0, BEFORE)
    assert positions.take_completed(3, lambda checkpoint_id: checkpoint_id == 2) == CheckpointPosition(3, {SOURCE: 3})
    assert positions.take_savepoint(2) == CheckpointPosition(2, {SOURCE: 2})
    assert positions.take_completed(4, no_savepoint) == CheckpointPosition(4, {SOURCE: 4})
    with pytest.raises(KeyError):
        positions.take_completed(1, no_savepoint)


def test_the_cut_of_a_savepoint_is_kept_until_a_newer_checkpoint_completes():
    positions = CheckpointPositions()
    positions.keep_savepoint(2, AFTER)
    assert positions.of_savepoint(2) == AFTER
    assert positions.of_savepoint(1) is positions.of_savepoint(None) is None
    positions.begin(1, BEFORE)
    positions.take_completed(1, no_savepoint)
    assert positions.of_savepoint(2) == AFTER
    positions.begin(3, BEFORE)
    positions.take_completed(3, no_savepoint)
    assert positions.of_savepoint(2) is None
