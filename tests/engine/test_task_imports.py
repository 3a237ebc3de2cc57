"""Spark's Python workers import the tasks before their first row, at every start and after every failure."""

from __future__ import annotations

import subprocess
import sys

import pytest

_IMPORTED = "import sys, {module}; print(*sys.modules)"


@pytest.mark.parametrize("task", ["transport_tasks", "level_task", "table_access"])
def test_a_task_imports_no_operators_and_no_state(task: str) -> None:
    program = _IMPORTED.format(module=f"ekorn.engine.spark.task_side.{task}")
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    imported = shown.stdout.split()
    assert f"ekorn.engine.spark.task_side.{task}" in imported
    rooms = ("ekorn.state.", "ekorn.connectors.", "ekorn.codegen.", "ekorn.operators.build", "ekorn.graph.specs")
    assert [name for name in imported if name.startswith(rooms)] == []
    assert not {"numpy", "pandas", "pyarrow"} & set(imported), "a second before the first row"
