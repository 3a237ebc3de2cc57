"""Blobs: what was put in comes out, in an order that does not depend on how they were delivered."""

import random

from hypothesis import given
from hypothesis import strategies as st

from tamias.subtask.wire.frames import END, RECORDS, WATERMARK, Blob, in_order
from tamias.types.by_value import dumps

small = st.integers(0, 3)


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.lists(st.integers()))
def test_a_blob_is_read_as_it_was_written(exchange, sender, sequence, values):
    frames = [(RECORDS, values, None), (WATERMARK, 5), (END,)]
    blob = Blob.decode(Blob(exchange, sender, sequence, dumps(frames)).encode())
    assert (blob.exchange, blob.sender, blob.sequence) == (exchange, sender, sequence)
    assert blob.frames() == frames


@given(st.sets(st.tuples(small, small, small)), st.randoms(use_true_random=False))
def test_blobs_are_read_in_one_order_however_they_arrive(names, chance: random.Random):
    blobs = [Blob(*name, b"") for name in names]
    chance.shuffle(blobs)
    ordered = [(b.sequence, b.exchange, b.sender) for b in in_order(blobs)]
    assert ordered == sorted(ordered)


@given(st.sets(st.tuples(small, small, small)), st.sets(small), st.randoms(use_true_random=False))
def test_blobs_of_some_exchanges_can_be_read_before_all_others(names, first, chance: random.Random):
    blobs = [Blob(*name, b"") for name in names]
    chance.shuffle(blobs)
    ordered = list(in_order(blobs, first))
    before = [b for b in ordered if b.exchange in first]
    assert ordered[: len(before)] == before
    assert before == list(in_order(before))
    assert ordered[len(before) :] == list(in_order(ordered[len(before) :]))
