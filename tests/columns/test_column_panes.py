"""The panes of windows on columns: what snapshots hold of them, and what is left of windows that are over."""

import numpy as np
import pyarrow as pa

from ekorn.columns.kernels import kernel_for
from ekorn.columns.key_index import KeyIndex
from ekorn.datastream.columns import Count, Sum
from ekorn.operators.columns.column_panes import ColumnPanes
from ekorn.state.column_table import KeyValues
from ekorn.table import DataTypes

SIZE_MS = 10
KEY = DataTypes.ROW([DataTypes.FIELD("k", DataTypes.STRING())])


def table(*, tracked=True):
    kernels = [kernel_for(Count(), None, pa.int64()), kernel_for(Sum("v"), pa.int64(), pa.int64())]
    return ColumnPanes(KeyIndex([pa.string()]), kernels, KeyValues(KEY), SIZE_MS, tracked=tracked)


def add(panes, keys, start, value):
    numbers = panes.panes(panes.key_numbers([pa.array(keys)]), np.full(len(keys), start))
    values = pa.array([value] * len(keys), pa.int64())
    panes.kernels[0].update(numbers, None)
    panes.kernels[1].update(numbers, values)
    return numbers


def entries(taken):
    return dict(zip(taken.keys[:], taken.values[:], strict=True))


def test_windows_that_are_over_leave_nothing_behind():
    panes, sizes = table(tracked=False), []
    for window in range(60):
        add(panes, [f"key {window * 400 + n} with a name of some length" for n in range(800)], window * SIZE_MS, 1)
        fired = panes.fire((window - 1) * SIZE_MS)
        panes.close((window - 1) * SIZE_MS)
        assert len(fired) == (800 if window else 0)
        assert len(panes) == 800
        sizes.append(panes.size_bytes)
    assert max(sizes[30:]) <= max(sizes[:30])


def test_changes_on_top_of_changes_are_the_whole_also_when_panes_get_other_numbers():
    panes, saved, pending = table(), {}, []
    rng = np.random.default_rng(5)
    for step in range(60):
        keys = [f"k{n}" for n in rng.integers(0, 900, 700)]
        add(panes, keys, (step // 2) * SIZE_MS, step)
        if step % 5 == 0:
            add(panes, keys[:50], (step // 2 + 3) * SIZE_MS, step)  # stays open longer
        if step % 2:
            panes.fire((step // 2) * SIZE_MS)
            panes.close((step // 2 - 1) * SIZE_MS)
        pending.append(panes.take_changed())
        if step % 3 == 2:  # the checkpoints before were not completed
            merged = pending[0] if len(pending) == 1 else dict.fromkeys(each for p in pending for each in p)
            changes = panes.some(merged)
            saved |= entries(changes)
            for address in changes.gone[:]:
                saved.pop(address, None)
            pending.clear()
            assert saved == entries(panes.whole())
    restored = table()
    restored.load(saved)
    assert entries(restored.whole()) == saved
    assert restored.data == saved
    numbers = add(restored, ["k1"], 1000, 7)
    assert restored.kernels[1].results(numbers).to_pylist() == [7]


def test_a_window_that_is_opened_again_is_empty_and_stays_in_snapshots():
    panes = table()
    add(panes, ["a", "b"], 0, 5)
    panes.take_changed()
    panes.fire(0)
    panes.close(0)
    add(panes, ["a"], 0, 1)  # as when a clock is set back
    changes = panes.some(panes.take_changed())
    assert entries(changes) == {(("a",), (0, 10)): ((1, 1), False)}
    assert changes.gone[:] == [(("b",), (0, 10))]
