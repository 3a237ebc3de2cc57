"""What `ekorn state` answers to mistakes, and what it tells of operator state."""

import os
import shutil
import sys
from functools import partial
from typing import Any, cast

import pyarrow.parquet
import pytest
from raw_program import draw as raw_program

from ekorn.cli.main import main
from ekorn.common import Types
from ekorn.datastream.functions import KeyedProcessFunction
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.errors import CorruptFileError, StateError
from ekorn.state_processor.reading.state_rows import rows_by_key
from ekorn.state_processor.reading.stored_savepoint import open_savepoint
from ekorn.state_processor.tools.editing import edit_savepoint
from ekorn.state_processor.tools.export import export_parquet
from tests.state_processor.programs import every_kind, numbers, savepoint_of
from tests.state_processor.window_programs import tumbling_reduce


def run(capsys, *arguments):
    code = main(["state", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


class Remember(KeyedProcessFunction):
    def open(self, runtime_context):
        self.last = runtime_context.get_state(ValueStateDescriptor("last"))

    def process_element(self, value, ctx):
        self.last.update(value)
        yield value


def keyed_by(env, selector, key_type):
    return numbers(env).key_by(selector, key_type).process(Remember()).uid("remember")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return savepoint_of(every_kind, tmp_path_factory.mktemp("savepoint"))


# ---------------------------------------------------------------------------------------------------------------- keys


@pytest.mark.parametrize(
    ("selector", "key_type", "texts"),
    [
        (lambda n: str(n % 3), Types.STRING(), ["1", "'1'"]),
        (lambda n: n % 3, Types.LONG(), ["1"]),
        (lambda n: n / 2, Types.DOUBLE(), ["1", "0.5"]),
        (lambda n: (n % 3, "a"), Types.TUPLE([Types.LONG(), Types.STRING()]), ["(1, 'a')"]),
        (lambda n: n % 3, None, ["1"]),
    ],
    ids=["text", "numbers", "fractions", "tuples", "undeclared"],
)
def test_a_key_is_read_by_the_declared_type_of_the_keys(tmp_path, capsys, selector, key_type, texts):
    path = savepoint_of(partial(keyed_by, selector=selector, key_type=key_type), tmp_path)
    for text in texts:
        code, found, _ = run(capsys, "get", path, "remember", text)
        assert code == 0 and found.startswith("last (value of pickled): "), text


def test_a_key_of_another_type_is_refused_with_the_type_of_the_keys(tmp_path, capsys):
    path = savepoint_of(tumbling_reduce, tmp_path)
    code, _, error = run(capsys, "get", path, "windows", "ann")
    assert code == 1 and "has keys of type Long: 'ann' is not a key of type Long" in error


def test_a_key_without_state_is_told_with_one_that_has_some(path, capsys):
    code, text, _ = run(capsys, "get", path, "every-kind", "'3'")
    assert code == 1 and "has no state of key '3', which is a str; one of its keys is " in text
    assert text.rstrip().endswith(", which is a int")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["get", "PATH", "numbers", "1"], "has no keyed state: `ekorn state show` prints its elements"),
        (["get", "PATH", "", "1"], "the uid is empty: name the operator by its uid"),
        (["get", "PATH", "every-kind", "{'a': 1}"], "cannot use {'a': 1} as a key: a dict is mutable"),
        (["edit", "PATH", "numbers", f"{__file__}:run", "NEW"], "as rows, with the format ekorn-state"),
        (["export", "PATH", "positions", "NEW"], "its other states by name: 'seen', 'all', 'rules'"),
        (["export", "PATH", "every-kind", "NEW", "--state", "other"], "has no keyed state 'other'; it has "),
    ],
)
def test_a_mistake_is_named_with_what_to_do(path, tmp_path, capsys, arguments, says):
    given = [{"PATH": path, "NEW": tmp_path / "new"}.get(each, each) for each in arguments]
    code, _, error = run(capsys, *given)
    assert code == 1 and says in error and not (tmp_path / "new").exists()


def test_a_number_of_entries_below_zero_is_refused(path, capsys):
    with pytest.raises(SystemExit):
        main(["state", "show", path, "--sample", "-1"])
    assert "'-1' is not a number of entries" in capsys.readouterr().err


# --------------------------------------------------------------------------------------------------------------- edits


def test_an_edit_that_fails_names_the_key_and_writes_nothing(path, tmp_path):
    def fails(key, state):
        raise LookupError("no such account")

    with pytest.raises(LookupError) as caught:
        edit_savepoint(path, "every-kind", fails, tmp_path / "new")
    (note,) = caught.value.__notes__
    assert note.startswith("raised by the edit of key ") and "uid 'every-kind'" in note
    assert not (tmp_path / "new").exists()


def test_an_edit_that_returns_something_else_than_a_dict_is_refused(path, tmp_path):
    with pytest.raises(StateError, match=r"the edit of key \d of operator 'every kind' .* returned 5: return a dict"):
        edit_savepoint(path, "every-kind", lambda key, state: cast(Any, 5), tmp_path / "new")
    assert not (tmp_path / "new").exists()


# -------------------------------------------------------------------------------------------------------------- output


def test_an_export_that_fails_leaves_no_files_behind(path, tmp_path):
    stored = open_savepoint(path).operator("every-kind")
    columns, torn = rows_by_key(stored).row_type(), stored.parts()[-1].files[-1].path
    shutil.copytree(path, tmp_path / "copy")
    (tmp_path / "copy" / torn).write_bytes(b"torn")
    table = rows_by_key(open_savepoint(str(tmp_path / "copy")).operator("every-kind"))
    with pytest.raises(CorruptFileError, match="cannot read"):
        export_parquet(table, tmp_path / "rows", columns)
    assert table.part_count == 2 and list((tmp_path / "rows").iterdir()) == [], "the first part was written"


def test_output_that_nobody_reads_any_more_is_no_failure_to_report(path, capsys, monkeypatch):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", buffering=1) as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        code = main(["state", "show", path])
        monkeypatch.undo()
    assert code == 1 and capsys.readouterr().err == ""


# ------------------------------------------------------------------------------------------------------ operator state


def test_a_difference_tells_the_changes_of_operator_state(tmp_path, capsys):
    old, new = (savepoint_of(every_kind, tmp_path / str(after), after=after) for after in (2, 4))
    code, text, _ = run(capsys, "diff", old, new, "--uid", "positions")
    lines = [line.partition(": ")[0] for line in text.splitlines()]
    assert code == 1 and set(lines) == {"added    positions seen", "added    positions all"}
    assert "rules" not in text, "the entry of broadcast state did not change"
    code, text, _ = run(capsys, "diff", old, new, "--uid", "numbers")
    assert code == 1 and {line.split()[0] for line in text.splitlines()} == {"added", "removed"}, "the positions"


def test_lists_that_were_only_distributed_differently_are_no_difference(tmp_path, capsys):
    paths = [savepoint_of(every_kind, tmp_path / str(n), parallelism=n) for n in (1, 2)]
    code, text, _ = run(capsys, "diff", *paths, "--uid", "positions")
    assert (code, text) == (0, "")


def test_a_difference_tells_the_changes_of_raw_and_broadcast_state(tmp_path, capsys):
    old, new = (savepoint_of(raw_program, tmp_path / str(after), after=after) for after in (1, 3))
    code, text, _ = run(capsys, "diff", old, new)
    assert code == 1 and "changed  " in text and " _raw/keyed: key group " in text and " -> b'" in text


def test_operator_state_is_exported_by_its_name(path, tmp_path, capsys):
    assert run(capsys, "export", path, "positions", tmp_path / "seen", "--state", "seen")[0] == 0
    rows = pyarrow.parquet.read_table(tmp_path / "seen").to_pylist()
    assert {tuple(row) for row in rows} == {("subtask", "position", "element")}
    assert {row["subtask"] for row in rows} == {0, 1}
