"""The commands of the manual that install something run in environments of their own. They download packages."""

from __future__ import annotations

import os
import subprocess
import venv
from pathlib import Path

import pytest

from tests.manual.blocks import DOCS, ROOT, blocks_run_by
from tests.manual.page_run import commands_of, same

pytestmark = pytest.mark.soak
README = ROOT / "README.md"
START = DOCS / "index.md"
FRAUD = DOCS / "tutorial" / "8-fraud_on_kafka.md"
BYTEWAX = DOCS / "coming_from" / "bytewax.md"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Variables of a shell in which a new virtual environment is active."""
    folder = tmp_path / "environment"
    venv.create(folder, with_pip=True, symlinks=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK", "EKORN"))}
    return kept | {"PATH": os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])}


def shell(script: str, folder: Path, environment: dict[str, str]) -> str:
    """Run a script as one shell does, up to the first command that fails; return what it printed."""
    done = subprocess.run(
        ["bash", "-ec", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=1200, check=False
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def script_of(page: Path, **replaced: str) -> str:
    blocks = blocks_run_by(__file__, page)
    script = "\n".join(command for block in blocks for command, _ in commands_of(block.text))
    for shown, real in replaced.items():
        script = script.replace(f"<{shown.replace('_', ' ')}>", real)
    return script


def test_a_clone_runs_the_demo_and_is_installed(tmp_path, environment):
    demo = shell(script_of(README, this_repository=str(ROOT)), tmp_path, environment)
    assert "0 orders lost, 0 counted twice" in demo
    again = shell(script_of(START), tmp_path / "ekorn", environment)
    assert "0 orders lost, 0 counted twice" in again
    shell(script_of(FRAUD, path_to_the_clone=str(tmp_path / "ekorn")), tmp_path, environment)
    where = shell("python -c 'import confluent_kafka, pyspark, ekorn; print(ekorn.__file__)'", tmp_path, environment)
    assert where.startswith(str(tmp_path / "environment"))


def test_the_program_for_bytewax_prints_what_its_page_shows(tmp_path, environment):
    for block in blocks_run_by(__file__, BYTEWAX):
        if block.is_file:
            (tmp_path / block.title).write_text(block.text, encoding="utf-8")
            continue
        for command, shown in commands_of(block.text):
            printed = shell(command, tmp_path, environment)
            assert not shown or same(shown, printed), printed
