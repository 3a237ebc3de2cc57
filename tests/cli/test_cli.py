"""The command line: `run` with settings, `savepoint list`, `show` and `dispose`, their messages and exit codes."""

import os
import subprocess
import sys

import pytest

from ekorn.checkpoint.restore_point import resolve
from ekorn.cli.main import _parser, _with_trigger, main
from ekorn.errors import ProgramWarning
from ekorn.testing.local_run import on_local_engine

PROGRAM = """
import sys
import time
from ekorn.common import Configuration
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.functions import KeyedProcessFunction
from ekorn.datastream.state import ValueStateDescriptor


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield f"{value}: {self.count.value()}"


env = StreamExecutionEnvironment.get_execution_environment()
words = sys.argv[1:]
env.from_collection(words).key_by(lambda word: word).process(Count()).uid("count").name("count").print()
print("parallelism", env.get_parallelism(), "interval", env.get_checkpoint_config().get_checkpoint_interval())
client = env.execute_async("words")
ended = client.get_job_execution_result()
if env.get_default_savepoint_directory() is not None:
    while not client.get_progress().records_read and not ended.done():
        time.sleep(0.01)
    try:
        print("savepoint", client.stop_with_savepoint(False).result(60))
    except Exception as error:
        print("no savepoint", error)
ended.result(60)
"""


@pytest.fixture
def script(tmp_path):
    """Return a function that writes a program and returns its path."""

    def write(text=PROGRAM, name="program.py"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch):
    """Undo that the program becomes `__main__`."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delenv("EKORN_CONF_DIR", raising=False)


def run(*arguments):
    with on_local_engine():
        return main([str(argument) for argument in arguments])


# ------------------------------------------------------------------------------------------------------------ running


def test_a_program_runs_with_its_own_arguments(script, capsys):
    assert run("run", script(), "a", "b", "a", "-p", "9") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "parallelism 1 interval -1"
    assert sorted(lines[1:]) == ["-p: 1", "9: 1", "a: 1", "a: 2", "b: 1"]


def test_settings_reach_the_program_s_environment(script, capsys):
    assert run("run", "-p", 3, "-D", "execution.checkpointing.interval=5 s", script(), "a") == 0
    assert "parallelism 3 interval 5000" in capsys.readouterr().out


def test_an_old_key_on_the_command_line_beats_the_configuration_file(script, capsys, tmp_path, monkeypatch):
    (tmp_path / "config.yaml").write_text("state.backend.type: hashmap\nparallelism.default: 2\n")
    monkeypatch.setenv("EKORN_CONF_DIR", str(tmp_path))
    assert run("run", script(), "a") == 0
    assert "parallelism 2" in capsys.readouterr().out
    assert run("run", "-p", 4, script(), "a") == 0
    assert "parallelism 4" in capsys.readouterr().out


def test_what_the_program_sets_beats_the_command_line(script, capsys):
    changed = PROGRAM.replace("words = ", "env.set_parallelism(1)\nwords = ")
    with pytest.warns(ProgramWarning) as warned:
        assert run("run", "-p", 4, script(changed), "a") == 0
    (said,) = [each for each in warned if each.category is ProgramWarning]
    assert str(said.message) == (
        "-p 4 of the command line has no effect, because the program sets the parallelism to 1 here: "
        "remove the call of set_parallelism"
    )
    assert "parallelism 1" in capsys.readouterr().out
    line = changed.splitlines().index("env.set_parallelism(1)") + 1
    assert (os.path.basename(said.filename), said.lineno) == ("program.py", line)


def test_settings_are_gone_with_the_program(script, capsys):
    run("run", "-p", 3, script(), "a")
    run("run", script(), "a")
    assert "parallelism 1" in capsys.readouterr().out.split("parallelism 3")[1]


def test_a_program_finds_the_modules_beside_it(script, capsys):
    script("WORDS = ['x', 'y']\n", "beside.py")
    assert run("run", script("from beside import WORDS\nprint(*WORDS)\n")) == 0
    assert capsys.readouterr().out == "x y\n"


def test_a_program_s_exception_is_shown_with_its_own_lines(script, capsys):
    assert run("run", script("def f():\n    raise ValueError('no')\nf()\n")) == 1
    error = capsys.readouterr().err
    assert "raise ValueError('no')" in error and "ValueError: no" in error and "ekorn/cli/" not in error


def test_a_job_that_fails_is_told_in_its_own_words(script, capsys):
    text = PROGRAM.replace('yield f"{value}: {self.count.value()}"', "yield 1 / 0")
    assert run("run", script(text), "a") == 1
    error = capsys.readouterr().err
    assert error.startswith("JobExecutionError: job 'words' failed") and "ZeroDivisionError" in error


@pytest.mark.parametrize("ending, code", [("0", 0), ("7", 7), ("None", 0), ("'some words'", 1)])
def test_a_program_s_exit_code_is_ours(script, capsys, ending, code):
    assert run("run", script(f"import sys\nsys.exit({ending})\n")) == code
    assert ("some words" in capsys.readouterr().err) is (code == 1)


def test_a_program_that_is_not_there_is_said_so(capsys):
    assert run("run", "nowhere.py") == 1
    assert "there is no program 'nowhere.py'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["walk"],
        ["run"],
        ["run", "-D", "key", "x.py"],
        ["run", "-D", "=value", "x.py"],
        ["run", "-p", "many", "x.py"],
        ["run", "--claim-mode", "MAYBE", "x.py"],
        ["savepoint"],
        ["savepoint", "show"],
        ["cancel"],
        ["cancel", "-s"],
        ["stop", "-type", "either", "job"],
        ["savepoint", "job", "--native", "--type", "canonical"],
    ],
)
def test_a_command_that_is_not_understood_exits_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2 and "usage: ekorn" in capsys.readouterr().err


# --------------------------------------------------------------------------------------------------------- savepoints

ENDLESS = """
from ekorn.functions.source_contract import Batch, Boundedness, Source, Split, SplitReader


class Reader(SplitReader):
    def __init__(self, position):
        self.at = position or 0

    def read(self, max_records):
        self.at += 1
        return Batch([self.at] if self.at % 2 else [])

    def position(self):
        return self.at

    @property
    def finished(self):
        return False


class Endless(Source):
    boundedness = Boundedness.CONTINUOUS_UNBOUNDED

    def discover_splits(self, parallelism):
        return [Split("one", 1)]

    def create_reader(self, split, position):
        return Reader(position)

"""
STOPPED = PROGRAM.replace("class Count", ENDLESS + "\nclass Count", 1).replace(
    "env.from_collection(words).key_by(lambda word: word)",
    "from ekorn.common import WatermarkStrategy\n"
    "source = env.from_source(Endless(), WatermarkStrategy.no_watermarks(), 'endless').uid('endless')\n"
    "source.key_by(lambda n: 'all')",
)


@pytest.fixture
def savepoint(script, capsys, tmp_path):
    """Return the path of a savepoint that a program took of itself, and the last count it printed."""
    assert run("run", "-D", f"state.savepoints.dir={tmp_path / 'savepoints'}", script(STOPPED)) == 0
    lines = capsys.readouterr().out.splitlines()
    (path,) = [line.removeprefix("savepoint ") for line in lines if line.startswith("savepoint ")]
    return path, max((int(line.split(": ")[1]) for line in lines if ": " in line), default=0)


def test_a_program_starts_from_a_savepoint(savepoint, script, capsys, tmp_path):
    path, last = savepoint
    assert run("run", "-s", path, "-D", f"state.savepoints.dir={tmp_path / 'more'}", script(STOPPED)) == 0
    counts = [int(line.split(": ")[1]) for line in capsys.readouterr().out.splitlines() if ": " in line]
    assert counts[0] == last + 1


def test_a_relative_path_is_where_the_command_was_given(savepoint, script, capsys, tmp_path, monkeypatch):
    path, last = savepoint
    monkeypatch.chdir(tmp_path / "savepoints")
    changed = "import os\nos.chdir('/')\n" + STOPPED
    relative = path.rpartition("/")[2]
    assert run("run", "-s", relative, "-D", f"state.savepoints.dir={tmp_path / 'more'}", script(changed)) == 0
    assert f": {last + 1}" in capsys.readouterr().out


@pytest.mark.parametrize("restore, drop", [("-s", "-n"), ("--fromSavepoint", "--allowNonRestoredState")])
def test_state_that_the_program_has_no_operator_for_needs_permission(savepoint, script, capsys, restore, drop):
    path, _ = savepoint
    assert run("run", restore, path, script(), "a") == 1
    assert "ignore-unclaimed-state" in capsys.readouterr().err
    assert run("run", restore, path, drop, script(), "a") == 0


def test_a_claimed_savepoint_goes_with_the_job(savepoint, script, capsys, tmp_path):
    path, _ = savepoint
    keys = ["-D", "execution.checkpointing.interval=10", "-D", f"execution.checkpointing.dir={tmp_path / 'chk'}"]
    assert run("run", "-s", path, "--claim-mode", "claim", "-n", *keys, script(), "a") == 0
    capsys.readouterr()
    assert run("savepoint", "show", path) == 1
    assert "no checkpoint at" in capsys.readouterr().err


def test_savepoints_are_listed_shown_and_disposed_of(savepoint, capsys, tmp_path):
    path, _ = savepoint
    name = path.rpartition("/")[2]
    assert run("savepoint", "list", tmp_path / "savepoints") == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header.split() == ["path", "kind", "number", "job", "operators", "state"]
    number = str(resolve(path)[1].checkpoint_id)
    assert row.split()[:4] == [name, "savepoint", number, "words"]
    assert run("savepoint", "show", path) == 0
    shown = capsys.readouterr().out
    for url in (f"file://{path}", f"file:{path}/_metadata"):
        assert run("savepoint", "show", url) == 0
        assert capsys.readouterr().out == shown
    assert "operator 'count'" in shown and "uid          'count'" in shown and "count" in shown
    assert run("savepoint", "dispose", path) == 0
    assert f"disposed of savepoint {number} of job 'words'" in capsys.readouterr().out
    assert run("savepoint", "list", tmp_path / "savepoints") == 1
    assert "no savepoints" in capsys.readouterr().err


def test_a_savepoint_is_disposed_of_the_way_flink_has_it(savepoint, capsys):
    path, _ = savepoint
    assert run("savepoint", "-d", path) == 0
    assert "disposed of savepoint" in capsys.readouterr().out
    assert run("savepoint", "--dispose", path) == 1
    assert "no checkpoint at" in capsys.readouterr().err


def test_a_savepoint_that_cannot_be_read_is_listed_with_the_reason(tmp_path, capsys):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "_metadata").write_bytes(b"rubbish")
    assert run("savepoint", "list", tmp_path) == 0
    assert "broken  unreadable" in capsys.readouterr().out
    for command in ("show", "dispose"):
        assert run("savepoint", command, tmp_path / "broken") == 1
        assert capsys.readouterr().err.startswith("CorruptFileError: ")


def test_the_module_is_a_command():
    command = [sys.executable, "-m", "ekorn", "--help"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "savepoint" in found.stdout


@pytest.mark.parametrize(
    ("given", "is_native"),
    [([], False), (["--native"], True), (["-type", "native"], True), (["--type", "CANONICAL"], False)],
)
@pytest.mark.parametrize("command", [["stop"], ["savepoint"]])
def test_the_format_of_a_savepoint_is_named_as_in_flink_or_shorter(command, given, is_native):
    parsed = _parser().parse_args(_with_trigger([*command, *given, "job"]))
    assert parsed.native is is_native
