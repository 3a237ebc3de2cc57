"""The queues of asynchronous I/O, checked against plain lists: which results may leave, and in which order."""

from hypothesis import given
from hypothesis import strategies as st

from ekorn.operators.asynchronous.async_queue import OrderedQueue, PendingRecord, UnorderedQueue


class Driven:
    """A queue, with the names of what was added and taken: records are numbers, marks are letters."""

    def __init__(self, queue):
        self.queue = queue
        self.came = []
        self.open = []
        self.completed = []
        self.left = []

    def add(self):
        pending = PendingRecord(len(self.came), None)
        self.came.append(pending.kept)
        self.open.append(pending)
        self.queue.add(pending)

    def mark(self):
        name = f"mark {len(self.came)}"
        self.came.append(name)
        self.queue.add_mark(lambda: self.left.append(name))

    def complete(self, which):
        if self.open:
            pending = self.open.pop(which % len(self.open))
            pending.results = []
            self.completed.append(pending.kept)
            self.queue.complete(pending)

    def take_all(self):
        while (item := self.queue.take()) is not None:
            if isinstance(item, PendingRecord):
                assert item.results is not None, "it left before its results were there"
                self.left.append(item.kept)
            else:
                item()
        waiting = {pending.kept for pending in self.queue.waiting()}
        assert waiting == {name for name in self.came if isinstance(name, int)} - set(self.left)
        assert len(self.queue) == len(waiting)

    def run(self, steps):
        for step, which in steps:
            if step == "complete":
                self.complete(which)
            else:
                {"add": self.add, "mark": self.mark}[step]()
            self.take_all()
        while self.open:
            self.complete(0)
            self.take_all()


steps = st.lists(st.tuples(st.sampled_from(["add", "add", "mark", "complete", "complete"]), st.integers(0, 9)))


@given(steps)
def test_in_order_everything_leaves_as_it_came(steps):
    driven = Driven(OrderedQueue())
    driven.run(steps)
    assert driven.left == driven.came


def segments(names):
    """Return the records between marks."""
    parts = [[]]
    for name in names:
        if isinstance(name, int):
            parts[-1].append(name)
        else:
            parts += [[name], []]
    return parts


@given(steps)
def test_out_of_order_nothing_passes_a_mark(steps):
    driven = Driven(UnorderedQueue())
    driven.run(steps)
    assert [sorted(part, key=str) for part in segments(driven.left)] == [
        sorted(part, key=str) for part in segments(driven.came)
    ]


@given(steps)
def test_out_of_order_what_is_complete_first_leaves_first_between_two_marks(steps):
    driven = Driven(UnorderedQueue())
    driven.run(steps)
    when = {name: number for number, name in enumerate(driven.completed)}
    for part in segments(driven.left):
        if part and isinstance(part[0], int):
            assert part == sorted(part, key=when.__getitem__)


def test_a_mark_in_front_leaves_at_once():
    for queue in (OrderedQueue(), UnorderedQueue()):
        driven = Driven(queue)
        driven.mark()
        driven.take_all()
        assert driven.left == ["mark 0"]
