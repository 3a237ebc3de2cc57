"""What subtasks put out reaches the program: lines, collected records, accumulators and counts of progress."""

from __future__ import annotations

from typing import Any

import pytest

from ekorn.common.accumulators import IntCounter, LongCounter
from ekorn.common.job_id import JobID
from ekorn.driver.checkpoints.checkpoint_positions import CheckpointPosition
from ekorn.driver.job_handle import JobHandle
from ekorn.driver.output.job_output import JobOutput, merge_accumulators
from ekorn.driver.statistics.job_metrics import JobMetrics
from ekorn.errors import AccumulatorError, EkornError
from ekorn.operators.epoch import Ack
from tests.slot.small_job import SOURCE, SUM, graph, summing

GRAPH = graph(summing)


def counter(value: int, kind: type[Any] = IntCounter) -> Any:
    made = kind()
    made.add(value)
    return made


class Output:
    """The output of the small job, with the handle that the program has."""

    def __init__(self, *, takes_back: bool) -> None:
        self.handle = JobHandle(JobID.generate(), "job")
        self.output = JobOutput(
            GRAPH,
            self.handle.view,
            self.handle.results,
            JobMetrics(GRAPH),
            takes_back=takes_back,
            collect_buffer_bytes=1 << 20,
        )

    def show(self, epoch: int, read: int, **of_sum: Any) -> None:
        source = Ack(SOURCE.vertex, 0, epoch, records_in=read, watermark=7)
        self.output.show(epoch, [source, Ack(SUM.vertex, 0, epoch, records_in=100, **of_sum)], wall_ms=12.5)


def test_lines_are_printed_in_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    shown = Output(takes_back=False)
    shown.show(0, 1, lines=["a", "b"])
    shown.show(1, 1, lines=["c"])
    assert capsys.readouterr().out == "a\nb\nc\n"


def test_progress_counts_epochs_and_what_sources_have_read() -> None:
    shown = Output(takes_back=True)
    shown.show(0, 3, watermark=40)
    shown.show(1, 2, watermark=50)
    progress = shown.handle.progress()
    assert (progress.epochs, progress.records_read, progress.last_epoch_records, progress.last_epoch_ms) == (
        2,
        5,
        2,
        12.5,
    )
    assert progress.watermark == 50, "of the operators behind the sources"


def test_what_a_failure_takes_back_is_not_counted_as_read() -> None:
    shown = Output(takes_back=True)
    shown.show(0, 3)
    shown.output.commit(CheckpointPosition(0, shown.output.records_read))
    shown.show(1, 2)
    assert sum(shown.output.records_read.values()) == 5
    shown.output.begin_attempt(None)
    assert sum(shown.output.records_read.values()) == 3
    shown.show(1, 4)
    assert shown.handle.progress().records_read == 7


def test_accumulators_of_subtasks_are_merged_and_stay_their_own() -> None:
    first, second = counter(2), counter(3)
    merged = merge_accumulators([{"a": first, "b": counter(1)}, {"a": second}, {"a": counter(4)}])
    assert {name: found.get_local_value() for name, found in merged.items()} == {"a": 9, "b": 1}
    assert (first.get_local_value(), second.get_local_value()) == (2, 3)
    assert merge_accumulators([]) == {}


def test_accumulators_of_two_kinds_under_one_name_are_refused() -> None:
    with pytest.raises(
        AccumulatorError, match="accumulator 'a' is a IntCounter in one operator and a LongCounter in another"
    ):
        merge_accumulators([{"a": counter(1)}, {"a": counter(1, LongCounter)}])


class Unmergeable(IntCounter):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def clone(self) -> Unmergeable:
        return Unmergeable(self.error)

    def merge(self, other: Any) -> None:
        raise self.error


def test_a_merge_that_fails_names_the_accumulator() -> None:
    failing = Unmergeable(ValueError("no sum"))
    with pytest.raises(AccumulatorError, match="accumulator 'a' could not be merged: no sum"):
        merge_accumulators([{"a": failing}, {"a": failing}])
    refused = Unmergeable(EkornError("ekorn says why"))
    with pytest.raises(EkornError, match=r"^ekorn says why$"):
        merge_accumulators([{"a": refused}, {"a": refused}])
