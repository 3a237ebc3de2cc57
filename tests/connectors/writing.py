"""The files of a file sink, as a reader and as the sink see them."""

from __future__ import annotations

from pathlib import Path


def visible_files(base: Path) -> list[Path]:
    return sorted(p for p in base.rglob("*") if p.is_file() and not p.name.startswith("."))


def hidden_files(base: Path) -> list[Path]:
    return sorted(p for p in base.rglob(".*") if p.is_file())


def visible_lines(base: Path) -> list[str]:
    return [line for path in visible_files(base) for line in path.read_text().splitlines()]
