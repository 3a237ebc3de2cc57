"""The commands that start a cluster of Spark on one machine, in one shell as a reader has it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.manual.blocks import DOCS, ROOT, blocks_of, blocks_run_by
from tests.manual.page_run import commands_of, same
from tests.servers.ports import free_ports

PAGE = DOCS / "guides" / "local_cluster.md"


@pytest.mark.spark
@pytest.mark.soak  # half a minute: CI has half an hour for everything
def test_five_commands_start_a_cluster_run_a_job_on_it_and_end_it(tmp_path: Path) -> None:
    (program,) = (block for block in blocks_of(PAGE) if block.is_file)
    (tmp_path / program.title).write_text(program.text, encoding="utf-8")
    (block,) = blocks_run_by(__file__, PAGE)
    commands = commands_of(block.text)
    assert len(commands) == 5
    (port,) = free_ports(1)
    typed = [command for command, _ in commands]
    # A person needs some seconds for the next line. A master on a busy machine may need more than `ekorn run` waits.
    typed.insert(3, "until (exec 3<>/dev/tcp/127.0.0.1/7077) 2>/dev/null; do sleep 0.2; done")
    script = "\n".join(["set -e", *typed, "wait"]).replace("7077", str(port))
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
    variables |= {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env=variables | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    logs = [(tmp_path / name).read_text() for name in ("master.log", "worker.log")]
    assert same("".join(shown for _, shown in commands), done.stdout), (done.stdout, done.stderr, *logs)
    assert "Registered app first job" in logs[0] or "Registering app" in logs[0]
    assert "Launch command" in logs[1], "the worker started an executor for the job"
