"""What the driver takes from the acknowledgements of an epoch."""

import pytest

from tamias.driver.epoch_runner import least_by_group
from tamias.operators.epoch import Ack
from tamias.testing.scripted import run_scripted
from tests.driver.savepoint_programs import environment, numbers


def test_the_slowest_source_of_an_alignment_group_counts():
    acks = [
        Ack(0, 0, 7, group_watermarks={"slow": 5, "both": 9}),
        Ack(0, 1, 7, group_watermarks={"both": 3}),
        Ack(1, 0, 7),
        Ack(1, 1, 7, group_watermarks={"both": 4}),
    ]
    assert least_by_group(acks) == {"slow": 5, "both": 3}
    assert least_by_group([]) == {}


def test_an_epoch_takes_the_time_between_its_order_and_its_last_acknowledgement(tmp_path):
    run = run_scripted(numbers(environment(tmp_path)))
    progress = run.handle.progress()
    assert progress.epochs == 8
    assert progress.last_epoch_ms == pytest.approx(10), (
        "an epoch of a script takes ten milliseconds, however many came before it"
    )
