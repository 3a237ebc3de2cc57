"""Entries that are divided by key on local disk: none is lost, and neither memory nor open files grow with them."""

import tracemalloc
from collections import Counter
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.keygroups import state_key
from ekorn.state.canonical_format import Chunk
from ekorn.state.snapshots import StateInfo
from ekorn.state_processor.reading.spooled_entries import StoredEntries, divided
from tests.examples_by_profile import examples
from tests.live_jobs import open_files

NAMES = ("one", "other")
INFOS = {name: StateInfo(name, "value") for name in NAMES}


def stored(chunks):
    return StoredEntries(chunks, dict(INFOS))


def many(count, chunk_entries=100):
    """Yield chunks with entries of two states for each number."""
    for start in range(0, count, chunk_entries):
        here = [state_key(n) for n in range(start, min(count, start + chunk_entries))]
        for name in NAMES:
            yield Chunk(name, "value", list(here), [f"{name}-{key}" for key in here], [])


changes = st.lists(
    st.tuples(
        st.sampled_from(NAMES), st.lists(st.integers(0, 20), max_size=6), st.lists(st.integers(0, 20), max_size=3)
    ),
    max_size=12,
)


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(changes, min_size=1, max_size=2), st.sampled_from([1, 300, 1 << 20]))
def test_the_pieces_together_are_what_the_chunks_make_up_in_their_order(savepoints, piece_bytes):
    number, expected, sources = 0, [], []
    for of_savepoint in savepoints:
        chunks, tables = [], {name: {} for name in NAMES}
        for name, there, gone in of_savepoint:
            number += 1
            chunks.append(Chunk(name, "value", there, [number] * len(there), gone))
            tables[name].update(dict.fromkeys(there, number))
            for key in gone:
                tables[name].pop(key, None)
        expected.append(tables)
        sources.append(stored(chunks))
    found = [{name: {} for name in NAMES} for _ in savepoints]
    places: Counter[int] = Counter()
    for piece in divided(sources, piece_bytes):
        places.update({key for tables in piece for table in tables.values() for key in table.entries})
        for whole, restored in zip(found, piece, strict=True):
            for name, table in restored.items():
                whole[name].update(table.entries)
    assert found == expected
    assert all(count == 1 for count in places.values()), "a key is in one piece, in all states and savepoints"


@pytest.mark.parametrize("count", [2_000, 30_000])
def test_memory_and_open_files_do_not_grow_with_the_number_of_pieces(count, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    piece_bytes = 2_000
    pieces = entries = most_files = largest = 0
    tracemalloc.start()
    try:
        for (tables,) in divided([stored(many(count))], piece_bytes):
            pieces += 1
            here = sum(len(table.entries) for table in tables.values())
            entries, largest = entries + here, max(largest, here)
            if pieces % 16 == 1:
                most_files = max(most_files, len(open_files(tmp_path)))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert entries == 2 * count and pieces > count // 100
    assert largest < 200, "a piece has about as many entries as fit into its bytes"
    assert 0 < most_files <= 3 * 33, "those of the depths, one below another"
    assert peak_bytes < 5 << 20
    assert not open_files(tmp_path)


def test_files_are_closed_where_pieces_are_not_asked_for_any_more(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with closing(divided([stored(many(1_000))], 2_000)) as pieces:
        next(pieces)
        assert open_files(tmp_path)
    assert not open_files(tmp_path)
