"""Number sequences and generated records: their distribution over readers, and their rate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekorn.clock import ManualClock
from ekorn.common.typeinfo import Types
from ekorn.datastream.connectors.datagen import DataGeneratorSource, GeneratorFunction, RateLimiterStrategy
from ekorn.datastream.connectors.number_seq import NumberSequenceSource
from ekorn.functions.source_contract import Boundedness
from ekorn.testing.kits import SourceJob


def test_the_first_ranges_are_the_longer_ones():
    splits = NumberSequenceSource(1, 10).discover_splits(4)
    assert [split.what for split in splits] == [(1, 3), (4, 6), (7, 8), (9, 10)]


def test_there_are_no_empty_ranges():
    assert [split.what for split in NumberSequenceSource(1, 2).discover_splits(5)] == [(1, 1), (2, 2)]
    assert NumberSequenceSource(1, 0).discover_splits(5) == []


def test_numbers_at_the_end_of_the_range_of_longs():
    top = 2**63 - 1
    assert SourceJob(NumberSequenceSource(top - 2, top), 2).read_all() == [top - 2, top - 1, top]
    assert NumberSequenceSource(-(2**63), top).discover_splits(2)[1].what == (0, top)


@pytest.mark.parametrize(("start", "end"), [(2, 0), (0, 2**63), (-(2**63) - 1, 0)])
def test_invalid_sequences_are_refused(start, end):
    with pytest.raises(ValueError, match=r"sequence|64 bits"):
        NumberSequenceSource(start, end)


@pytest.mark.parametrize("start", [1.0, "1", True, None])
def test_numbers_must_be_ints(start):
    with pytest.raises(TypeError, match="takes two ints, but start is"):
        NumberSequenceSource(start, 3)


def test_sources_say_what_they_produce():
    assert NumberSequenceSource(1, 2).get_produced_type() == Types.LONG()
    assert DataGeneratorSource(str, 1, type_info=Types.STRING()).get_produced_type() == Types.STRING()


@pytest.mark.parametrize("count", [None, 2**63 - 1])
def test_a_generator_without_end_deals_numbers_out_in_turn(count):
    source = DataGeneratorSource(lambda number: number, count)
    assert source.boundedness is Boundedness.CONTINUOUS_UNBOUNDED
    job = SourceJob(source, 3)
    assert [job.read(subtask, 3) for subtask in (0, 1, 2, 0)] == [[0, 3, 6], [1, 4, 7], [2, 5, 8], [9, 12, 15]]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4)), max_size=20), st.lists(st.integers(1, 5), max_size=5))
def test_a_generator_without_end_skips_and_repeats_nothing_when_rescaled(reads, parallelisms):
    source = DataGeneratorSource(lambda number: number, None)
    job, seen = SourceJob(source, 3), []
    for parallelism in [*parallelisms, 1]:
        for subtask, count in reads:
            seen += job.read(subtask, count)
        job = SourceJob(source, parallelism, job.snapshot())
    # Every split has read a prefix of its numbers; together the prefixes are all numbers up to the positions.
    expected = {n for _, (first, _, step, _), position, _ in job.snapshot() for n in range(first, position, step)}
    assert sorted(seen) == sorted(expected)


def test_a_rate_lets_through_what_the_clock_allows():
    clock = ManualClock()
    source = DataGeneratorSource(lambda number: number, None, RateLimiterStrategy.per_second(10), clock=clock)
    (split,) = source.discover_splits(1)
    reader = source.create_reader(split, None)
    assert reader.read(100).values == [0]
    assert reader.read(100).values == []
    clock.advance(250)
    assert reader.read(100).values == [1, 2]
    clock.advance(50)
    assert reader.read(100).values == [3]
    clock.advance(1000)
    assert len(reader.read(4).values) == 4
    assert len(reader.read(100).values) == 6
    clock.advance(3_600_000)
    assert len(reader.read(100).values) == 10, "what was not read in a second is not caught up with"


def test_the_rate_is_shared_and_stays_the_same_after_rescaling():
    clock = ManualClock()
    source = DataGeneratorSource(lambda number: number, None, RateLimiterStrategy.per_second(100), clock=clock)
    splits = source.discover_splits(4)
    readers = [source.create_reader(split, None) for split in splits]
    restored = [source.create_reader(s, r.position()) for s, r in zip(splits, readers, strict=True)]
    for some in (readers, restored):
        assert [len(reader.read(1000).values) for reader in some] == [1, 1, 1, 1]
    clock.advance(1000)
    assert sum(len(reader.read(1000).values) for reader in readers) == 100
    assert sum(len(reader.read(1000).values) for reader in restored) == 100


def test_a_rate_below_one_a_second_is_kept():
    clock = ManualClock()
    source = DataGeneratorSource(lambda number: number, 3, RateLimiterStrategy.per_second(0.5), clock=clock)
    (split,) = source.discover_splits(1)
    reader = source.create_reader(split, None)
    counts = []
    for _ in range(60):
        counts.append(len(reader.read(10).values))
        clock.advance(100)
    assert [i for i, count in enumerate(counts) if count] == [0, 20, 40]
    assert reader.finished


class Numbered(GeneratorFunction):
    opened = 0

    def open(self, reader_context):
        self.opened += 1
        self.split_id = reader_context.split_id

    def map(self, value):
        return (self.split_id, self.opened, value)


def test_every_reader_opens_a_generator_function_of_its_own():
    job = SourceJob(DataGeneratorSource(Numbered(), 4), 2)
    assert sorted(job.read_all()) == [("0", 1, 0), ("0", 1, 1), ("1", 1, 2), ("1", 1, 3)]


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf"), "5", True])
def test_invalid_rates_are_refused(rate):
    with pytest.raises(ValueError, match="per_second"):
        RateLimiterStrategy.per_second(rate)


@pytest.mark.parametrize("count", [-1, 1.5, "3", True])
def test_invalid_counts_are_refused(count):
    with pytest.raises(ValueError, match="count of 0 or more"):
        DataGeneratorSource(str, count)


def test_a_generator_that_is_not_a_function_is_refused():
    with pytest.raises(TypeError, match="a function or a GeneratorFunction"):
        DataGeneratorSource("x", 1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="RateLimiterStrategy"):
        DataGeneratorSource(str, 1, 10)  # type: ignore[arg-type]
