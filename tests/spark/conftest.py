"""Tests on real Spark: what only processes and Spark can break. One embedded session serves them all."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def slot_processes() -> list[int]:
    """Process ids of every slot there is on this machine that descends from this test run."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
                environment = (entry / "environ").read_bytes()
            except OSError:  # it ended while we looked
                continue
            if b"tamias.slot.slot_main" in command and _MARK.encode() in environment:
                found.append(int(entry.name))
    return found


_MARK = f"TAMIAS_TEST_RUN={os.getpid()}"


@pytest.fixture(scope="session", autouse=True)
def _mark_children() -> Iterator[None]:
    name, value = _MARK.split("=")
    os.environ[name] = value
    yield
    del os.environ[name]


def run_driver(
    program: str, *arguments: str, env: dict[str, str] | None = None, stdin: int | None = None
) -> subprocess.Popen[str]:
    """Start a driver process that runs a Python program given as text."""
    path = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        env=os.environ | {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1"} | (env or {}),
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
