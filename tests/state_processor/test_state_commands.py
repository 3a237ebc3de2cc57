"""`ekorn state` shows, compares, exports and edits the state in savepoints, also without the job's classes."""

import pickle
import sys
import types
from pathlib import Path

import pyarrow.parquet
import pytest

from ekorn.checkpoint.restore_point import resolve
from ekorn.cli.main import main
from ekorn.datastream.functions import KeyedProcessFunction
from ekorn.datastream.state import MapStateDescriptor, ValueStateDescriptor
from ekorn.errors import StateError, UntrustedFileError
from ekorn.state_processor.reading.entries import address_of, pieces_of
from ekorn.state_processor.reading.stored_savepoint import open_savepoint
from ekorn.state_processor.spark.registration import EkornStateSource
from ekorn.state_processor.stand_ins import StandIn, load_value, stand_ins_importable
from ekorn.state_processor.tools.editing import edit_savepoint
from ekorn.state_processor.tools.savepoint_inspection import find_key
from tests.state_processor.programs import FAR_MS, every_kind, numbers, restored, savepoint_of
from tests.state_processor.window_programs import session_process, tumbling_reduce

BACKENDS = pytest.mark.parametrize(("backend", "native"), [("hashmap", False), ("rocksdb", True)])


def run(capsys, *arguments):
    code = main(["state", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@BACKENDS
def test_show_counts_and_shows_the_entries_of_every_state(tmp_path, capsys, backend, native):
    path = savepoint_of(every_kind, tmp_path, backend=backend, native=native)
    code, text, _ = run(capsys, "show", path, "--sample", "1")
    assert code == 0
    assert "value (value of Long): 5 entries" in text and "ttl (value of Long with time-to-live): 5 entries" in text
    assert "_timers/event (timers of pickled): " in text and f" at {10**15}" in text
    assert "rules (broadcast of" in text and "'limit': 7" in text
    assert run(capsys, "show", path, "--uid", "positions")[1].count("operator ") == 1


@BACKENDS
def test_get_prints_all_state_of_one_key(tmp_path, capsys, backend, native):
    path = savepoint_of(every_kind, tmp_path, backend=backend, native=native)
    code, text, _ = run(capsys, "get", path, "every-kind", "3")
    assert (
        code == 0
        and "rare (value of pickled): {'seen': " in text
        and f"_timers/event (timers of pickled) at {FAR_MS + 3}" in text
    )
    code, text, _ = run(capsys, "get", path, "every-kind", "'3'")
    assert code == 1 and "no state of key '3', which is a str" in text


def test_get_prints_the_windows_of_a_key(tmp_path, capsys):
    path = savepoint_of(tumbling_reduce, tmp_path)
    code, text, _ = run(capsys, "get", path, "windows", "2")
    assert code == 0 and "_window/panes (window-panes of pickled) at (0, 20): ListedPane(contents=" in text


def test_diff_prints_what_changed_and_edit_writes_a_new_savepoint(tmp_path, capsys):
    old = savepoint_of(every_kind, tmp_path)
    before = {path: path.read_bytes() for path in Path(old).iterdir()}
    script = tmp_path / "repair.py"
    script.write_text(
        "def edit(key, state):\n    if key == 3:\n        state['value'] = -1\n        del state['rare']\n"
    )
    code, text, _ = run(capsys, "edit", old, "every-kind", f"{script}:edit", tmp_path / "new")
    assert code == 0 and "1 entries changed and 1 removed, of 5 keys" in text
    code, text, _ = run(capsys, "diff", old, tmp_path / "new")
    lines = sorted(text.splitlines())
    assert code == 1 and len(lines) == 2
    assert lines[0].startswith("changed  every-kind value 3: ") and lines[0].endswith(" -> -1")
    assert lines[1].startswith("removed  every-kind rare 3: {'seen': ")
    assert run(capsys, "diff", old, old)[:2] == (0, "")
    assert {path: path.read_bytes() for path in Path(old).iterdir()} == before
    one, other = (restored(every_kind, p, tmp_path / n) for p, n in ((old, "a"), (str(tmp_path / "new"), "b")))
    assert {r[0]: r[2:] for r in one} == {r[0]: r[2:] for r in other}
    assert {r[0] for r in set(one) - set(other)} == {3}, "only the edited key differs"


def test_an_edited_value_must_fit_the_declared_type_and_a_wrong_name_is_refused(tmp_path, capsys):
    old = savepoint_of(every_kind, tmp_path)
    script = tmp_path / "repair.py"
    script.write_text("def a(key, state): state['value'] = 'text'\ndef b(key, state): return {'other': 1}\n")
    code, _, error = run(capsys, "edit", old, "every-kind", f"{script}:a", tmp_path / "new")
    assert code == 1 and "is declared as Long, and cannot hold 'text'" in error and not (tmp_path / "new").exists()
    assert "has no keyed state 'other'" in run(capsys, "edit", old, "every-kind", f"{script}:b", tmp_path / "new")[2]
    assert "has no function 'c'" in run(capsys, "edit", old, "every-kind", f"{script}:c", tmp_path / "new")[2]


@BACKENDS
def test_export_writes_parquet_with_a_column_for_each_state(tmp_path, capsys, backend, native):
    path = savepoint_of(every_kind, tmp_path, backend=backend, native=native)
    assert run(capsys, "export", path, "every-kind", tmp_path / "rows")[0] == 0
    table = pyarrow.parquet.read_table(tmp_path / "rows").to_pylist()
    assert sorted(row["key"] for row in table) == list(range(5))
    for row in table:
        assert row["value"] == sum(row["list"]) and dict(row["map"]) == {str(n): n for n in row["list"]}
        assert row["reducing"] == max(row["list"]) and row["aggregating"] == {
            "f0": row["value"],
            "f1": len(row["list"]),
        }
        assert (row["rare"] is not None) == (row["key"] == 3)
    assert run(capsys, "export", path, "every-kind", tmp_path / "list", "--state", "list")[0] == 0
    elements = pyarrow.parquet.read_table(tmp_path / "list").to_pylist()
    assert sorted(e["list_element"] for e in elements) == sorted(n for row in table for n in row["list"])
    assert all(0 <= e["key_group"] < 128 and e["ttl_ms"] is None for e in elements)
    assert run(capsys, "export", path, "every-kind", tmp_path / "ttl", "--state", "ttl")[0] == 0
    assert all(e["ttl_ms"] is not None for e in pyarrow.parquet.read_table(tmp_path / "ttl").to_pylist())
    assert run(capsys, "export", path, "every-kind", tmp_path / "timers", "--timers")[0] == 0
    timers = pyarrow.parquet.read_table(tmp_path / "timers").to_pylist()
    assert {(t["key"], t["timestamp_ms"] - FAR_MS) for t in timers if t["time_domain"] == "event"} == {
        (n % 5, n) for row in table for n in row["list"]
    }
    assert "already contains files" in run(capsys, "export", path, "every-kind", tmp_path / "rows")[2]


def test_a_savepoint_that_is_not_signed_is_refused_where_a_key_is_configured(tmp_path, capsys, monkeypatch):
    path = savepoint_of(every_kind, tmp_path)
    key = tmp_path / "key"
    key.write_bytes(b"k" * 32)
    key.chmod(0o600)
    (tmp_path / "config.yaml").write_text(f"ekorn.checkpoint.signing-key-file: {key}\n")
    monkeypatch.setenv("EKORN_CONF_DIR", str(tmp_path))
    commands = {
        "show": [],
        "get": ["every-kind", 3],
        "diff": [path],
        "export": ["every-kind", tmp_path / "rows"],
        "edit": ["every-kind", f"{__file__}:run", tmp_path / "new"],
    }
    for command, more in commands.items():
        code, _, error = run(capsys, command, path, *more)
        assert code == 1 and "UntrustedFileError" in error and "no signature" in error
    table = EkornStateSource({"path": path, "operatorUid": "every-kind"})
    with pytest.raises(UntrustedFileError, match="no signature"):
        table.schema()
    with pytest.raises(UntrustedFileError, match="no signature"):
        edit_savepoint(path, "every-kind", lambda key, state: None, tmp_path / "new")


# ------------------------------------------------------------------------------------- classes that cannot be imported

CLASSES = """
from dataclasses import dataclass
from enum import Enum

class Colour(Enum):
    RED = "red"

@dataclass(frozen=True)
class Place:
    street: str
    number: int

@dataclass
class Parcel:
    weight: float
    places: list
    colour: Colour = Colour.RED
"""


@pytest.fixture
def classes():
    """Make the module of the job's classes importable; a test removes it again."""

    def load():
        module = sys.modules["job_classes"] = types.ModuleType("job_classes")
        exec(compile(CLASSES, "job_classes", "exec"), vars(module))
        return module

    yield load
    sys.modules.pop("job_classes", None)


class Deliver(KeyedProcessFunction):
    def open(self, runtime_context):
        self.last = runtime_context.get_state(ValueStateDescriptor("last"))
        self.by_place = runtime_context.get_map_state(MapStateDescriptor("by place"))

    def process_element(self, value, ctx):
        job = sys.modules["job_classes"]
        place = ctx.get_current_key()
        before = self.last.value()
        self.last.update(job.Parcel(value / 2, [place]))
        self.by_place.put(place, value)
        yield str(before), sorted((p.number, n) for p, n in self.by_place.items())


def delivered(env):
    def place_of(n):
        return sys.modules["job_classes"].Place("Main", n % 3)

    return numbers(env).key_by(place_of).process(Deliver()).uid("deliver")


@BACKENDS
def test_classes_that_cannot_be_imported_are_shown_and_survive_an_edit(tmp_path, capsys, classes, backend, native):
    classes()
    old = savepoint_of(delivered, tmp_path, backend=backend, native=native)
    expected = restored(delivered, old, tmp_path / "a", backend=backend)
    del sys.modules["job_classes"]
    code, text, _ = run(capsys, "show", old, "--uid", "deliver")
    assert code == 0 and "job_classes.Place(street='Main', number=" in text
    assert "job_classes.Parcel(weight=" in text and "colour=job_classes.Colour('red')" in text
    assert run(capsys, "export", old, "deliver", tmp_path / "rows")[0] == 0
    assert run(capsys, "export", old, "deliver", tmp_path / "last", "--state", "last")[0] == 0
    assert {row["key_group"] for row in pyarrow.parquet.read_table(tmp_path / "last").to_pylist()} == {None}
    assert "no state of key 'Main'" in run(capsys, "get", old, "deliver", "Main")[1]
    script = tmp_path / "edit.py"
    script.write_text("def nothing(key, state): pass\n")
    assert run(capsys, "edit", old, "deliver", f"{script}:nothing", tmp_path / "new")[0] == 0
    assert "job_classes" not in sys.modules
    assert run(capsys, "diff", old, tmp_path / "new")[:2] == (0, "")
    classes()
    assert restored(delivered, str(tmp_path / "new"), tmp_path / "b", backend=backend) == expected


def test_a_stand_in_is_pickled_as_its_original_was(classes):
    module = classes()
    original = {module.Place("Main", 1): [module.Parcel(1.5, [1]), module.Colour.RED]}
    data = pickle.dumps(original)
    del sys.modules["job_classes"]
    read = load_value(data)
    assert all(isinstance(key, StandIn) for key in read) and read == load_value(data)
    with stand_ins_importable():
        again = pickle.dumps(read)
    assert "job_classes" not in sys.modules
    sys.modules["job_classes"] = module
    assert pickle.loads(again) == original


def test_stand_ins_of_modules_in_packages_are_pickled_under_their_names():
    names = ["shop", "shop.orders", "shop.orders.lines"]
    lines = types.ModuleType(names[-1])
    exec(compile(CLASSES, names[-1], "exec"), vars(lines))
    parents = [types.ModuleType(name) for name in names[:-1]]
    try:
        sys.modules.update(zip(names, [*parents, lines], strict=True))
        data = pickle.dumps(lines.Parcel(1.5, [1]))
        for name in names:
            del sys.modules[name]
        with stand_ins_importable():
            again = pickle.dumps(load_value(data))
        assert not set(names) & set(sys.modules)
        sys.modules.update(zip(names, [*parents, lines], strict=True))
        assert pickle.loads(again) == lines.Parcel(1.5, [1])
    finally:
        for name in names:
            sys.modules.pop(name, None)


def test_an_edit_that_changes_only_the_type_of_a_number_is_a_change(tmp_path):
    path = savepoint_of(every_kind, tmp_path)

    def as_int(key, state):
        if "rare" in state:
            state["rare"] = 1

    def as_float(key, state):
        if "rare" in state:
            state["rare"] = 1.0

    assert edit_savepoint(path, "every-kind", as_int, str(tmp_path / "int")).changed == 1
    assert edit_savepoint(str(tmp_path / "int"), "every-kind", as_float, str(tmp_path / "float")).changed == 1
    found = find_key(open_savepoint(str(tmp_path / "float")).operator("every-kind"), 3)
    assert [repr(each.value) for each in found if each.info.name == "rare"] == ["1.0"]


@pytest.mark.parametrize(("state", "value", "holds"), [("list", "123", "a list"), ("map", [1], "a dict")])
def test_an_edit_that_gives_another_kind_of_value_is_refused(tmp_path, state, value, holds):
    path = savepoint_of(every_kind, tmp_path)
    with pytest.raises(StateError, match=f"is {state} state and holds {holds}, got "):
        edit_savepoint(path, "every-kind", lambda key, states: {**states, state: value}, str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()


def test_a_part_of_rocksdb_is_read_by_key_group(tmp_path):
    path = savepoint_of(every_kind, tmp_path, backend="rocksdb", native=True)
    stored = open_savepoint(path).operator("every-kind")
    pieces = [tables for part in stored.parts() for tables in pieces_of(stored, part)]
    sizes = [len(tables["value"].entries) for tables in pieces if "value" in tables]
    assert sum(sizes) == 5 and len(sizes) > 2
    assert {o.uid for o in resolve(path).metadata.operators} >= {"every-kind", "positions", "numbers"}


def _told(tables):
    return [repr((name, *entry)) for name, table in tables.items() for entry in table.entries.items()]


@pytest.mark.parametrize(("program", "uid"), [(every_kind, "every-kind"), (session_process, "windows")])
def test_a_large_part_is_read_in_pieces_that_have_all_entries_of_their_keys(tmp_path, program, uid):
    stored = open_savepoint(savepoint_of(program, tmp_path)).operator(uid)
    pieces_by_part = [(part, list(pieces_of(stored, part, piece_bytes=1))) for part in stored.parts()]
    assert sum(len(pieces) for _, pieces in pieces_by_part) > len(pieces_by_part)
    for part, pieces in pieces_by_part:
        (whole,) = pieces_of(stored, part)
        assert sorted(entry for tables in pieces for entry in _told(tables)) == sorted(_told(whole))
        keys = [{repr(address_of(t.info, at).key) for t in tables.values() for at in t.entries} for tables in pieces]
        assert sum(map(len, keys)) == len(set.union(*keys)), "a key is in one piece"
