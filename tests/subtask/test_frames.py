"""Blobs: encoded, decoded, and read in an order that does not depend on their delivery."""

import random

from hypothesis import given
from hypothesis import strategies as st

from ekorn.subtask.wire.frames import END, RECORDS, WATERMARK, Blob, destination_of, in_order, is_blob
from ekorn.types.by_value import dumps

small = st.integers(0, 3)


number = st.integers(0, 2**32 - 1)


@given(number, number, number, st.integers(0, 2**64 - 1), st.lists(st.integers()))
def test_a_blob_is_decoded_as_it_was_encoded(exchange, sender, target, sequence, values):
    frames = [(RECORDS, values, None), (WATERMARK, 5), (END, False)]
    sent = Blob(exchange, sender, target, sequence, dumps(frames))
    data = b"".join(sent.encode())
    blob = Blob.decode(data)
    assert (blob.exchange, blob.sender, blob.target, blob.sequence) == (exchange, sender, target, sequence)
    assert blob.frames() == frames
    assert len(data) == sent.size_bytes
    assert is_blob(data)
    assert destination_of(data) == (exchange, target)


def blob_of(exchange, sender, sequence):
    return Blob(exchange, sender, 0, sequence, b"")


@given(st.sets(st.tuples(small, small, small)), st.randoms(use_true_random=False))
def test_blobs_are_read_in_one_order_however_they_arrive(names, chance: random.Random):
    blobs = [blob_of(*name) for name in names]
    chance.shuffle(blobs)
    ordered = [(b.sequence, b.exchange, b.sender) for b in in_order(blobs)]
    assert ordered == sorted(ordered)


@given(st.sets(st.tuples(small, small, small)), st.sets(small), st.randoms(use_true_random=False))
def test_blobs_of_some_exchanges_can_be_read_before_all_others(names, first, chance: random.Random):
    blobs = [blob_of(*name) for name in names]
    chance.shuffle(blobs)
    ordered = list(in_order(blobs, first))
    before = [b for b in ordered if b.exchange in first]
    assert ordered[: len(before)] == before
    assert before == list(in_order(before))
    assert ordered[len(before) :] == list(in_order(ordered[len(before) :]))
