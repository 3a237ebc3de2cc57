"""When the heap writes everything again instead of what has changed since the last completed checkpoint."""

from typing import Any

import pytest

from ekorn.state.heap.change_log import Chain, ChangeLog
from ekorn.state.snapshots import StateFile

KIB = 1 << 10


class Asked:
    """A table that notes what is captured of it."""

    def __init__(self, changed: int = 1) -> None:
        self.changed = changed
        self.captured: list[str] = []

    def take_changed(self):
        return list(range(self.changed))

    def whole(self):
        self.captured.append("whole")

    def some(self, keys):
        self.captured.append(f"{len(keys)} changes")


def in_file(size):
    return StateFile(size, 0, path="shared/1-a")


def inside(size):
    return StateFile(size, 0, inline=b"")


def captured_after(chain, *, changed=1, changes=0, incremental=True):
    """Return what is captured after a completed checkpoint with these files."""
    log, table = ChangeLog(incremental=incremental), Asked(changed)
    tables: Any = {"table": table}
    log.written(1, chain, changes)
    log.completed(1)
    log.capture(2, tables)
    return table.captured[0]


def test_without_a_completed_checkpoint_everything_is_written():
    log, table = ChangeLog(incremental=True), Asked()
    tables: Any = {"table": table}
    log.capture(1, tables)
    log.written(1, Chain((in_file(10),)), 0)
    log.capture(2, tables)
    assert table.captured == ["whole", "whole"]
    log.completed(1)
    log.capture(3, tables)
    assert table.captured[2:] == ["1 changes"]


def test_a_chain_goes_on_with_what_has_changed_unless_checkpoints_are_whole():
    assert captured_after(Chain((in_file(10),))) == "1 changes"
    assert captured_after(Chain()) == "1 changes"
    assert captured_after(Chain((in_file(10),)), incremental=False) == "whole"


@pytest.mark.parametrize(("sizes", "captured"), [([600, 400], "1 changes"), ([600, 401], "whole")])
def test_a_chain_begins_anew_when_its_changes_are_larger_than_the_whole(sizes, captured):
    changes = tuple((in_file(size),) for size in sizes)
    assert captured_after(Chain((in_file(700), in_file(300)), changes)) == captured


@pytest.mark.parametrize(("length", "captured"), [(99, "1 changes"), (100, "whole")])
def test_a_chain_begins_anew_when_it_is_long(length, captured):
    assert captured_after(Chain((in_file(1_000_000),), ((in_file(1),),) * length)) == captured


@pytest.mark.parametrize(("more", "captured"), [(0, "1 changes"), (1, "whole")])
def test_a_chain_begins_anew_when_much_of_it_is_inside_the_metadata(more, captured):
    changes = ((inside(100 * KIB),), (inside(156 * KIB + more), in_file(500 * KIB)))
    assert captured_after(Chain((in_file(10_000 * KIB),), changes)) == captured


@pytest.mark.parametrize(("changed", "captured"), [(50, "50 changes"), (51, "whole")])
def test_a_chain_begins_anew_when_the_changes_come_to_half_of_the_whole(changed, captured):
    """Two changes took 20 bytes the last time."""
    assert captured_after(Chain((in_file(1_000),), ((in_file(20),),)), changes=2, changed=changed) == captured
