"""What the driver takes from the acknowledgements of an epoch."""

from tamias.driver.epoch_runner import least_by_group
from tamias.operators.epoch import Ack


def test_the_slowest_source_of_an_alignment_group_counts():
    acks = [
        Ack(0, 0, 7, group_watermarks={"slow": 5, "both": 9}),
        Ack(0, 1, 7, group_watermarks={"both": 3}),
        Ack(1, 0, 7),
        Ack(1, 1, 7, group_watermarks={"both": 4}),
    ]
    assert least_by_group(acks) == {"slow": 5, "both": 3}
    assert least_by_group([]) == {}
