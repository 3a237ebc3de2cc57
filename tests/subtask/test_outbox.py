"""The output of a subtask: targets, order, and runs of records."""

from collections import Counter

import pytest

from ekorn.common import Configuration
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.errors import JobExecutionError
from ekorn.graph.channels import senders_of, targets_of
from ekorn.graph.job_graph import Exchange, Operator, OperatorId, Vertex, VertexId
from ekorn.graph.specs import Broadcast, Forward, Global, MapSpec, Rebalance, Rescale, Shuffle
from ekorn.subtask.exchange_writer import BLOB_BYTES, FULL_RUN, ExchangeWriter, Router
from ekorn.subtask.wire.frames import END, RECORDS, WATERMARK
from ekorn.testing.local_run import collect_locally


def vertex(parallelism):
    return Vertex(VertexId(0), "v", (Operator(OperatorId("0" * 32), None, "map", MapSpec(str)),), (), parallelism, 128)


def targets(partitioning, senders, receivers):
    exchange = Exchange(0, VertexId(0), 0, VertexId(1), partitioning)
    return [targets_of(exchange, vertex(senders), vertex(receivers), i) for i in range(senders)]


@pytest.mark.parametrize(
    ("senders", "receivers", "expected"),
    [
        (2, 4, [[0, 1], [2, 3]]),
        (4, 2, [[0], [0], [1], [1]]),
        (2, 3, [[0, 1], [2]]),
        (3, 2, [[0], [1], [1]]),
        (1, 3, [[0, 1, 2]]),
        (3, 1, [[0], [0], [0]]),
        (2, 2, [[0], [1]]),
    ],
)
def test_rescale_connects_as_flink_does(senders, receivers, expected):
    assert targets(Rescale(), senders, receivers) == expected


@pytest.mark.parametrize("senders", range(1, 8))
@pytest.mark.parametrize("receivers", range(1, 8))
def test_rescale_leaves_nobody_out_and_both_ends_agree(senders, receivers):
    found = targets(Rescale(), senders, receivers)
    assert all(found)
    assert {t for each in found for t in each} == set(range(receivers))
    exchange = Exchange(0, VertexId(0), 0, VertexId(1), Rescale())
    for j in range(receivers):
        expected = [i for i in range(senders) if j in found[i]]
        assert senders_of(exchange, vertex(senders), vertex(receivers), j) == expected


def test_other_partitionings_connect_to_their_own_or_to_all():
    assert targets(Forward(), 3, 3) == [[0], [1], [2]]
    for partitioning in (Rebalance(), Shuffle(), Broadcast(), Global()):
        assert targets(partitioning, 2, 3) == [[0, 1, 2], [0, 1, 2]]


def writer(partitioning=None, receivers=1, sender=0, blob_bytes=BLOB_BYTES):
    exchange = Exchange(3, VertexId(0), 0, VertexId(1), partitioning or Forward())
    return ExchangeWriter(exchange, list(range(receivers)), sender=sender, blob_bytes=blob_bytes)


def frames(blobs):
    return [frame for blob in blobs for frame in blob.frames()]


def test_records_and_watermarks_leave_in_the_order_they_were_sent():
    one = writer()
    one.channels[0].values += [1, 2]
    one.broadcast((WATERMARK, 5))
    one.channels[0].values.append(3)
    one.broadcast((END,))
    assert frames(one.take_all()) == [(RECORDS, [1, 2], None), (WATERMARK, 5), (RECORDS, [3], None), (END,)]


def test_runs_have_timestamps_or_have_none():
    one = writer()
    one.set_timed(False)
    one.channels[0].values.append("plain")
    one.set_timed(True)
    one.channels[0].values.append("timed")
    one.channels[0].times.append(7)
    one.set_timed(True)
    one.set_timed(False)
    one.channels[0].values.append("plain again")
    expected = [(RECORDS, ["plain"], None), (RECORDS, ["timed"], [7]), (RECORDS, ["plain again"], None)]
    assert frames(one.take_all()) == expected


def test_a_full_channel_leaves_at_once_and_blobs_of_an_epoch_are_numbered():
    one = writer(Rebalance(), receivers=2)
    one.channels[1].values += range(FULL_RUN)
    one.channels[0].values.append("few")
    assert [(b.target, b.sequence) for b in one.take_full()] == [(1, 0)]
    one.channels[1].values.append("rest")
    assert [(b.target, b.sequence) for b in one.take_all()] == [(0, 0), (1, 1)]
    one.restart()
    one.channels[1].values.append("next epoch")
    assert [(b.target, b.sequence) for b in one.take_all()] == [(1, 0)]


def sent(partitioning, count, receivers, sender=0):
    one = writer(partitioning, receivers, sender)
    router = Router(one, vertex(receivers), seed=1)
    for number in range(count):
        router.next()[0](number)
    return [channel.values for channel in one.channels]


def test_rebalance_goes_round_and_senders_begin_at_different_targets():
    assert sent(Rebalance(), 7, 3) == [[0, 3, 6], [1, 4], [2, 5]]
    assert sent(Rebalance(), 7, 3, sender=1) == [[2, 5], [0, 3, 6], [1, 4]]


def test_rescale_begins_at_its_first_target():
    assert sent(Rescale(), 5, 2, sender=1) == [[0, 2, 4], [1, 3]]


def test_shuffle_reaches_everybody_about_as_often():
    sizes = [len(values) for values in sent(Shuffle(), 3_000, 3)]
    assert sum(sizes) == 3_000
    assert min(sizes) > 800


def spread(partition, parallelism=3, count=12):
    """Return the records that each subtask got."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)

    from ekorn.datastream.functions import MapFunction

    class Where(MapFunction):
        def open(self, runtime_context):
            self.subtask = runtime_context.get_index_of_this_subtask()

        def map(self, value):
            return self.subtask, value

    found = {}
    for subtask, value in collect_locally(partition(env.from_collection(range(count))).map(Where())):
        found.setdefault(subtask, []).append(value)
    return found


def test_every_partitioner_end_to_end():
    assert spread(lambda s: s.broadcast()) == {subtask: list(range(12)) for subtask in range(3)}
    assert spread(lambda s: s.global_()) == {0: list(range(12))}
    assert spread(lambda s: s.rebalance()) == {i: list(range(i, 12, 3)) for i in range(3)}
    assert spread(lambda s: s.rescale()) == {i: list(range(i, 12, 3)) for i in range(3)}
    assert sorted(v for values in spread(lambda s: s.shuffle()).values() for v in values) == list(range(12))
    custom = spread(lambda s: s.partition_custom(lambda key, n: key % n, lambda value: value + 1))
    assert custom == {(i + 1) % 3: list(range(i, 12, 3)) for i in range(3)}
    by_key = spread(lambda s: s.key_by(lambda value: value % 4))
    assert sorted(v for values in by_key.values() for v in values) == list(range(12))
    owners = Counter(v % 4 for values in by_key.values() for v in {v % 4 for v in values})
    assert set(owners.values()) == {1}, "a key has one owner"


@pytest.mark.parametrize("answer", [-1, 3, 1.0, None, "0", True])
def test_a_partitioner_that_names_no_subtask_is_refused(answer):
    with pytest.raises(JobExecutionError, match=f"returned {answer!r}; it must return an int from 0 to 2"):
        spread(lambda s: s.partition_custom(lambda key, n: answer, lambda value: value))


def test_blobs_are_cut_by_bytes_in_the_order_of_the_records():
    one = writer(blob_bytes=10_000)
    one.channels[0].values += [bytes([n]) * 1_000 for n in range(100)]
    blobs = list(one.take_all())
    assert max(len(blob.payload) for blob in blobs) <= 20_000
    assert [blob.sequence for blob in blobs] == list(range(len(blobs)))
    assert [value[0] for frame in frames(blobs) for value in frame[1]] == list(range(100))


def test_timestamps_and_watermarks_keep_their_places_when_a_blob_is_cut():
    one = writer(blob_bytes=2_000)
    one.set_timed(True)
    for first in (0, 5):
        one.channels[0].values += [b"x" * 1_000] * 5
        one.channels[0].times += range(first, first + 5)
        one.broadcast((WATERMARK, first + 4))
    read = [frame[2] if frame[0] == RECORDS else frame[1] for frame in frames(one.take_all())]
    flat = [n for part in read for n in (part if isinstance(part, list) else ["mark", part])]
    assert flat == [0, 1, 2, 3, 4, "mark", 4, 5, 6, 7, 8, 9, "mark", 9]


def test_a_run_is_as_long_as_the_bytes_of_its_records_allow():
    small, large = writer(), writer()
    for _ in range(5):
        small.channels[0].values += range(FULL_RUN)
        large.channels[0].values += [b"x" * (1 << 20)] * 20
        assert list(small.take_full())
        list(large.take_all())
    assert small.channels[0].full_run == FULL_RUN
    assert large.channels[0].full_run <= 8


def test_records_between_watermarks_fill_a_channel_too():
    one = writer()
    for n in range(FULL_RUN):
        one.channels[0].values.append(n)
        one.broadcast((WATERMARK, n))
    assert len(list(one.take_full())) == 1


def test_a_record_above_every_bound_is_refused_with_its_size_and_key():
    env = StreamExecutionEnvironment.get_execution_environment(small_records())
    large = env.from_collection([("a", 1)]).map(lambda v: (v[0], b"x" * 60_000)).name("blow up")
    with pytest.raises(JobExecutionError, match=r"(?s)blow up.*a record of key 'a' has 60\d\d\d bytes when pickled"):
        collect_locally(large.key_by(lambda v: v[0]).map(len))


def test_a_collected_record_above_every_bound_is_refused_with_its_size():
    env = StreamExecutionEnvironment.get_execution_environment(small_records())
    large = env.from_collection([1]).map(lambda v: b"x" * 60_000).name("blow up")
    with pytest.raises(JobExecutionError, match=r"(?s)blow up.*a record has 60\d\d\d bytes when pickled"):
        collect_locally(large)


def test_output_that_cannot_be_sent_fails_an_operator_that_skips_records():
    """The error comes while a function yields, as an error of its own would; skipping it would lose other records."""
    configuration = small_records()
    configuration.set_string("ekorn.on-record-error", "skip")
    configuration.set_string("ekorn.exchange.blob-size", "10 kb")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    many = env.from_collection([1]).flat_map(lambda v: (b"x" * (60_000 if n == 500 else 100) for n in range(1_000)))
    with pytest.raises(JobExecutionError, match=r"a record of key 60000 has 60\d\d\d bytes when pickled"):
        collect_locally(many.key_by(len).map(len))


def small_records():
    configuration = Configuration()
    configuration.set_string("ekorn.exchange.max-record-size", "50000 b")
    return configuration
