"""Unmodified PyFlink scripts print what PyFlink printed."""

import subprocess
import sys

import pytest

from ekorn.cli.pyflink_script import main
from ekorn.pyflink import run_script
from ekorn.testing.local_run import on_local_engine
from ekorn.testing.process_engine import on_process_engine
from tests.pyflink.runs import EXAMPLES, HERE, OTHER_EXAMPLES, OURS, is_fresh, lines_of, recorded

SCRIPTS = HERE / "scripts"


def names(run):
    return run.name


@pytest.mark.parametrize("run", OURS, ids=names)
def test_a_script_is_as_it_was_when_it_was_recorded(run):
    assert is_fresh(run), f"{run.script} was changed: run runs.py with PyFlink again"


@pytest.mark.usefixtures("aliased")
class TestInThisProcess:
    @pytest.mark.parametrize("run", OURS, ids=names)
    def test_a_script_prints_what_pyflink_printed(self, run, capsys):
        with on_local_engine():
            run_script(str(SCRIPTS / run.script), run.arguments)
        assert lines_of(capsys.readouterr().out) == recorded()[run.name]

    @pytest.mark.parametrize("run", EXAMPLES, ids=names)
    def test_an_example_of_pyflinks_prints_the_same(self, run, pyflink_examples, capsys):
        with on_local_engine():
            run_script(str(pyflink_examples / run.script), run.arguments)
        assert lines_of(capsys.readouterr().out) == recorded()[run.name]

    @pytest.mark.parametrize(
        ("script", "says"),
        [
            ("streaming_word_count.py", r"Ekorn has no pyflink\.table"),
            ("asyncio/remote_model_inference.py", r"Ekorn has no pyflink\.table"),
            ("connectors/elasticsearch.py", r"no pyflink\..*\.elasticsearch; extend SinkFunction .* or use JdbcSink"),
            ("connectors/pulsar.py", r"no pyflink\..*\.pulsar; use KafkaSource and KafkaSink"),
        ],
    )
    def test_an_example_of_what_is_missing_says_what_to_use_instead(self, script, says, pyflink_examples):
        with pytest.raises(ImportError, match=says):
            run_script(str(pyflink_examples / script))

    def test_every_example_is_run_or_refused_for_a_reason(self, pyflink_examples):
        found = {str(path.relative_to(pyflink_examples)) for path in pyflink_examples.rglob("*.py")}
        assert found == {run.script for run in EXAMPLES} | OTHER_EXAMPLES.keys()

    def test_arguments_and_the_script_s_own_name(self, tmp_path, capsys):
        script = tmp_path / "show.py"
        script.write_text("import sys, __main__\nprint(__name__, __file__, sys.argv, __main__.__dict__ is globals())\n")
        run_script(str(script), ["--a", "b"])
        assert capsys.readouterr().out == f"__main__ {script} {[str(script), '--a', 'b']} True\n"

    def test_files_are_read_and_written(self, tmp_path):
        text, out = tmp_path / "text.txt", tmp_path / "out"
        text.write_text("a b a\nb a\n")
        with on_local_engine():
            run_script(str(SCRIPTS / "word_count.py"), ["--input", str(text), "--output", str(out)])
        (written,) = out.rglob("words*.txt")
        assert sorted(written.read_text().splitlines()) == ["(a,3)", "(b,2)"]

    @pytest.mark.parametrize(
        "run", [run for run in OURS if run.script == "beside.py" or "dynamic" in run.arguments], ids=names
    )
    def test_slots_understand_what_the_script_and_its_modules_import(self, run, capfd):
        with on_process_engine():
            run_script(str(SCRIPTS / run.script), run.arguments)
        assert lines_of(capfd.readouterr().out) == recorded()[run.name]


class TestOnTheCommandLine:
    def run(self, *arguments):
        command = [sys.executable, "-m", "ekorn.pyflink", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def test_an_error_shows_the_lines_of_the_script_alone(self, tmp_path):
        script = tmp_path / "fails.py"
        script.write_text("from pyflink.common import Row\n\ndef fail():\n    raise ValueError('so')\n\nfail()\n")
        done = self.run(str(script))
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1] == "ValueError: so"
        assert "line 6, in <module>" in done.stderr
        assert "ekorn" not in done.stderr

    def test_an_exit_status_is_passed_on(self, tmp_path):
        script = tmp_path / "ends.py"
        script.write_text("import sys\nsys.exit(7)\n")
        assert self.run(str(script)).returncode == 7

    def test_a_mistake_in_the_syntax(self, tmp_path):
        script = tmp_path / "broken.py"
        script.write_text("def (:\n")
        done = self.run(str(script))
        assert done.returncode == 1
        assert "SyntaxError" in done.stderr

    def test_the_modules_beside_the_script_are_found_and_not_those_beside_the_shell(self, tmp_path):
        script = tmp_path / "sees.py"
        (tmp_path / "neighbour.py").write_text("from pyflink.common import Types\nWHO = str(Types.INT())\n")
        script.write_text("import neighbour\nprint(neighbour.WHO)\n")
        assert self.run(str(script)).stdout.strip() != ""


def test_without_a_script(capsys):
    assert main([]) == 2
    assert "usage" in capsys.readouterr().err
    assert main(["--help"]) == 0
    assert "usage" in capsys.readouterr().out
    assert main(["no_such_script.py"]) == 2
    assert "no_such_script.py" in capsys.readouterr().err
