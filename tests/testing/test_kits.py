"""The conformance kits pass what keeps its promises, and name the promise that something else breaks."""

import re
import subprocess
import sys
import time
import uuid

import pytest

from ekorn.common import Row
from ekorn.datastream.connectors.base import Batch, Boundedness, Committer, Sink, SinkWriter, Source, Split, SplitReader
from ekorn.metrics import Sample
from ekorn.storage.locations import check_path
from ekorn.storage.memory import MemoryFiles
from ekorn.table import DataTypes
from ekorn.testing.kits import (
    ColumnSinkKit,
    FileStoreKit,
    FindsNewInput,
    Kit,
    RecoversFromFailures,
    RefusesBadInput,
    RefusesBadRecords,
    ReporterCase,
    SinkCase,
    SinkKit,
    SourceCase,
    SourceKit,
    TakesNamesOnce,
)
from ekorn.testing.kits.kit import for_each, promise
from tests.example_modules import example


def broken_by(kit: type[Kit], make_case) -> str:
    with pytest.raises(AssertionError) as broken:
        kit.check(make_case)
    return str(broken.value)


# --------------------------------------------------------------------------------------------------------- any kit


class Numbers(Kit):
    def test_it_is_even(self, case):
        promise(case % 2 == 0, f"{case} is odd")

    @for_each(divisor=(1, 2, 3), sign=(1, -1))
    def test_it_can_be_divided(self, make_case, divisor, sign):
        promise(make_case() % (sign * divisor) == 0, f"{divisor} leaves a rest")


class SmallNumbers(Numbers):
    def test_it_is_small(self, case):
        promise(case < 10, "it is large")


def test_a_kit_says_which_promise_is_broken_and_how():
    SmallNumbers.check(lambda: 6)
    assert broken_by(Numbers, lambda: 3) == "it is even: 3 is odd"
    assert broken_by(Numbers, lambda: 4) == "it can be divided (divisor=3, sign=1): 3 leaves a rest"
    assert broken_by(SmallNumbers, lambda: 12) == "it is small: it is large"


def test_an_error_of_what_is_checked_is_raised_as_itself_with_the_promise():
    with pytest.raises(TypeError) as raised:
        Numbers.check(lambda: "six")
    assert raised.value.__notes__ == ["while checking: it is even"]


class TestWithPytest(Numbers):
    @pytest.fixture
    def case(self):
        return 6

    @pytest.fixture
    def make_case(self, case):
        return lambda: case


def test_the_example_runs(capsys):
    assert example("own_parts").main() == 0
    assert capsys.readouterr().out.count("keeps its promises") == 4


# --------------------------------------------------------------------------------------------------------- sources

INPUT = {"left": ["tea", "nuts", "salt"], "right": ["rice", "oats"]}


class Shelves(Source):
    """A source over lists. `fault` names what it does wrong."""

    def __init__(self, fault="", shelves=None, boundedness=Boundedness.BOUNDED):
        self.fault, self.shelves, self._boundedness = fault, INPUT if shelves is None else shelves, boundedness
        self.calls = 0

    @property
    def boundedness(self):
        return self._boundedness

    def discover_splits(self, parallelism):
        self.calls += 1
        match self.fault:
            case "one id":
                return [Split("shelf", name) for name in self.shelves]
            case "new ids":
                return [Split(f"{name}-{self.calls}", name) for name in self.shelves]
            case "objects in splits":
                return [Split(name, Shelves()) for name in self.shelves]
        return [Split(name, name) for name in self.shelves]

    def create_reader(self, split, position):
        return ShelfReader(self, self.shelves[split.what], position)

    def __reduce__(self):
        if self.fault == "loses its settings":
            return Shelves, ("", {"left": []})
        return Shelves, (self.fault, self.shelves, self._boundedness)


class ShelfReader(SplitReader):
    def __init__(self, source, articles, position):
        self.source, self.articles = source, articles
        self.next = 0 if position is None or source.fault == "forgets its position" else len(position)
        if source.fault == "goes on too far" and position:
            self.next += 1

    def read(self, max_records):
        if self.source.fault == "reads too many":
            max_records += 1
        if self.source.fault == "skips" and not self.next and max_records == 7:
            self.next = 1
        found = self.articles[self.next : self.next + max_records]
        self.next += len(found)
        return Batch(found)

    def position(self):
        read = ["x"] * self.next
        return set(read) if self.source.fault == "objects in positions" else read

    @property
    def finished(self):
        return self.source.boundedness is Boundedness.BOUNDED and self.next >= len(self.articles)


class ShelvesCase(SourceCase):
    records = ["tea", "nuts", "salt", "rice", "oats"]

    def __init__(self, fault=""):
        self.fault = fault

    def bounded(self):
        return Shelves(self.fault)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("skips", r"every record is read once \(batch=7.*: 2 records are missing \('tea', 'rice'\)"),
        ("reads too many", r"every record is read once .*read\(1\) returned 2 records"),
        ("one id", r"splits have unique stable ids.*\[\('shelf', 2\)\]"),
        ("new ids", "splits have unique stable ids.*returns other splits"),
        ("objects in positions", "positions are plain data: split '.*' is at .*not plain data"),
        ("loses its settings", "every record is read once.*5 records are missing"),
        ("forgets its position", "a kill after every step .*(makes no progress|too many)"),
        ("goes on too far", "a kill after every step .*are missing"),
    ],
)
def test_a_broken_source_is_found(fault, says):
    SourceKit.check(ShelvesCase)
    text = broken_by(SourceKit, lambda: ShelvesCase(fault))
    assert re.search(says, text), text


class GrowingCase(ShelvesCase):
    def __init__(self, fault=""):
        super().__init__(fault)
        self.shelves = {name: list(articles) for name, articles in INPUT.items()}

    def unbounded(self):
        self.source = Shelves(self.fault, self.shelves, Boundedness.CONTINUOUS_UNBOUNDED)
        return self.source

    def add_input(self):
        if self.fault != "finds nothing new":
            self.source.shelves["left"].append("figs")
            self.source.shelves["new"] = ["plums"]
        return ["figs", "plums"]

    def spoil(self):
        return KeyError, "up"

    def bounded(self):
        return super().bounded() if self.fault != "swallows errors" else Shelves("", {})


def test_a_source_that_overlooks_new_input_is_found():
    FindsNewInput.check(GrowingCase)
    assert "after the input grew: 2 records are missing" in broken_by(
        FindsNewInput, lambda: GrowingCase("finds nothing new")
    )
    assert "KeyError is not raised" in broken_by(RefusesBadInput, GrowingCase)


# ----------------------------------------------------------------------------------------------------------- sinks


class Ledger(Sink):
    """A sink over a dict of transactions. `fault` names what it does wrong."""

    def __init__(self, fault, prepared, visible):
        self.fault, self.prepared, self.visible = fault, prepared, visible

    def create_writer(self, context, restored):
        return LedgerWriter(self)

    def create_committer(self):
        return None if self.fault == "no committer" else LedgerCommitter(self)


class LedgerWriter(SinkWriter):
    def __init__(self, sink):
        self.sink, self.waiting = sink, []

    def write(self, value, timestamp):
        if value == "bad" and self.sink.fault != "takes everything":
            raise ValueError("bad is no record")
        self.waiting.append(value)

    def prepare_commit(self):
        if self.sink.fault == "loses the last" and len(self.sink.prepared) == 1:
            self.waiting = self.waiting[:-1]
        name, self.sink.prepared = uuid.uuid4().hex, self.sink.prepared
        self.sink.prepared[name], self.waiting = self.waiting, []
        if self.sink.fault == "commits early":
            self.sink.visible += self.sink.prepared[name]
            return []
        return [name]

    def close(self):
        if self.sink.fault == "commits at close":
            self.sink.visible += self.waiting


class LedgerCommitter(Committer):
    def __init__(self, sink):
        self.sink = sink

    def commit(self, committables):
        for name in committables:
            if self.sink.fault == "commits twice":
                self.sink.visible += self.sink.prepared[name]
            else:
                self.sink.visible += self.sink.prepared.pop(name, [])
            if self.sink.fault == "commits the first":
                return


class LedgerOfRows(Ledger):
    """Takes rows or columns."""

    def with_columns(self, row_type):
        return self

    def create_writer(self, context, restored):
        return RowsWriter(self)


class RowsWriter(LedgerWriter):
    def write_batch(self, batch):
        rows = [Row(**fields) for fields in batch.data.to_pylist()]
        self.waiting += rows[1:] if self.sink.fault == "loses a row" else rows


class RowsCase(SinkCase):
    row_type = DataTypes.ROW([DataTypes.FIELD("n", DataTypes.BIGINT())])

    def __init__(self, fault="", kind=LedgerOfRows):
        self.fault, self.kind, self.prepared, self.seen = fault, kind, {}, []

    def sink(self):
        return self.kind(self.fault, self.prepared, self.seen)

    def record(self, number):
        return Row(n=number)

    def visible(self):
        return self.seen


def test_a_broken_sink_of_columns_is_found():
    ColumnSinkKit.check(RowsCase)
    assert "are missing" in broken_by(ColumnSinkKit, lambda: RowsCase("loses a row"))
    assert "the sink takes rows" in broken_by(ColumnSinkKit, lambda: RowsCase(kind=Ledger))


class LedgerCase(SinkCase):
    def __init__(self, fault=""):
        self.fault, self.prepared, self.seen = fault, {}, []

    def sink(self):
        return Ledger(self.fault, self.prepared, self.seen)

    def record(self, number):
        return number

    def visible(self):
        return self.seen

    def spoil(self):
        return "bad", ValueError, "no record"


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("commits early", "nothing is visible before its checkpoint is complete"),
        ("commits twice", "too many"),
        ("commits the first", "are missing"),
        ("loses the last", "all records are visible at the end.*are missing"),
        ("commits at close", "an orderly end discards what no checkpoint covers.*too many"),
        ("no committer", r"create_committer\(\) no committer"),
    ],
)
def test_a_broken_sink_is_found(fault, says):
    SinkKit.check(LedgerCase)
    text = broken_by(SinkKit, lambda: LedgerCase(fault))
    assert re.search(says, text), text


def test_a_sink_that_takes_everything_is_found():
    RefusesBadRecords.check(LedgerCase)
    assert broken_by(RefusesBadRecords, lambda: LedgerCase("takes everything")).endswith("ValueError is not raised")


# ----------------------------------------------------------------------------------------------------- file stores


class Store(MemoryFiles):
    """A store in memory. `fault` names what it does wrong."""

    def __init__(self, fault=""):
        super().__init__()
        self.fault = fault

    def replace(self, path, data):
        if self.fault == "replaces in two steps" and data:
            super().replace(path, data[: len(data) // 2])
            time.sleep(0.002)
        if self.fault == "deletes before it replaces":
            self.delete(path)
            time.sleep(0.002)
        super().replace(path, data)

    def publish(self, path, data):
        if self.fault == "publishes in two steps" and len(data) > 1000:
            super().publish(path, data[: len(data) // 2])
            time.sleep(0.002)
            super().replace(path, data)
        elif self.fault == "publishes over a file":
            super().replace(path, data)
        elif self.fault == "looks before it publishes":
            if self.exists(path):
                raise FileExistsError(path)
            time.sleep(0.002)
            super().replace(path, data)
        else:
            super().publish(path, data)

    def exists(self, path):
        return super().exists(path) and not (self.fault == "knows no directories" and path == "chk-1")

    def delete_tree(self, path):
        super().delete_tree(path)
        if self.fault == "deletes by prefix":
            for name in [name for name in self._files if name.startswith(path)]:
                del self._files[name]

    def below(self, path):
        return Store() if self.fault == "forgets its root" and check_path(path) else super().below(path)

    def _key(self, path):
        return self._prefix + path if self.fault == "follows any path" else super()._key(path)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("replaces in two steps", r"a replaced file whole: a reader saw \d+ bytes"),
        ("deletes before it replaces", "a replaced file whole: a reader failed .*FileNotFoundError"),
        ("publishes in two steps", "a published file whole or not at all: .*a part of the published file"),
        ("publishes over a file", "a published name is used once: FileExistsError is not raised"),
        ("knows no directories", "the directory of a file does not exist"),
        ("deletes by prefix", "a tree goes with all it holds and nothing else"),
        ("forgets its root", "No such file"),
        ("follows any path", r"a path that could leave the root is refused \(path=''\)"),
    ],
)
def test_a_broken_store_is_found(fault, says):
    FileStoreKit.check(Store)
    with pytest.raises((AssertionError, OSError)) as broken:
        FileStoreKit.check(lambda: Store(fault))
    assert re.search(says, str(broken.value)), broken.value


def test_a_store_that_takes_a_name_twice_is_found():
    TakesNamesOnce.check(Store)
    assert "of many publishers one wins" in broken_by(TakesNamesOnce, lambda: Store("looks before it publishes"))


# ------------------------------------------------------------------------------------------------------- reporters


class Board:
    """Keeps the last report. `fault` names what it does wrong."""

    def __init__(self, fault, shown):
        self.fault, self.shown, self.failed = fault, shown, False

    def report(self, samples):
        if self.fault == "blocks":
            time.sleep(1)
        if self.fault == "raises":
            raise ValueError("no report")
        if self.fault == "exits":
            raise SystemExit(1)
        if self.fault == "needs a number":
            max(sample.value for sample in samples)
        if self.fault == "changes samples" and samples:
            samples[0].variables["seen"] = "yes"
        if self.fault == "gives up" and self.failed:
            raise OSError("it failed before")
        if self.shown["fails"]:
            self.failed = True
            if self.fault != "swallows failures":
                raise OSError("" if self.fault == "has no words" else "the board is gone")
        if self.fault != "adds up":
            self.shown["values"].clear()
        keyed = {sample.name: sample for sample in samples} if self.fault == "forgets variables" else samples
        self.shown["values"] += [s.value if isinstance(s, Sample) else keyed[s].value for s in keyed]

    def close(self):
        if self.fault == "never closes":
            time.sleep(1)


class BoardCase(ReporterCase):
    def __init__(self, fault=""):
        self.fault, self.shown = fault, {"fails": False, "values": []}

    def reporter(self):
        return Board(self.fault, self.shown)

    def received(self):
        return self.shown["values"]

    def fail(self):
        self.shown["fails"] = True

    def recover(self):
        self.shown["fails"] = False


class ImpatientKit(RecoversFromFailures):
    limit_s = 0.2


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("blocks", r"report\(\) has not returned after 0.2 s"),
        ("never closes", r"close\(\) has not returned after 0.2 s"),
        ("exits", r"SystemExit\(1\), which would end the thread"),
        ("forgets variables", "every number arrives: .*1 records are missing"),
        ("adds up", "each report stands for itself: .*too many"),
        ("changes samples", "numbers are not changed: the reporter changed the samples"),
        ("gives up", "it failed before"),
        ("swallows failures", "raises nothing, although the destination fails"),
        ("has no words", "OSError has no message"),
        ("needs a number", "empty"),
        ("raises", "no report"),
    ],
)
def test_a_broken_reporter_is_found(fault, says):
    ImpatientKit.check(BoardCase)
    with pytest.raises((AssertionError, OSError, ValueError)) as broken:
        ImpatientKit.check(lambda: BoardCase(fault))
    assert re.search(says, str(broken.value)), broken.value


def test_kits_need_no_pytest():
    program = "import sys; sys.modules['pytest'] = None; import ekorn.testing.kits"
    subprocess.run([sys.executable, "-c", program], check=True)
