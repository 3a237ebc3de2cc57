"""Damages checkpoints on disk while no driver runs, as a bad disk or a careless person would."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Container, Iterator
from pathlib import Path

from tests.campaign.schedules import Damage

__all__ = ["Damage", "completed", "inflict", "is_discarded", "newest", "state_files"]

GOLDEN = Path(__file__).parents[1] / "golden" / "2"  # healthy checkpoints of other jobs


def completed(base: Path) -> list[Path]:
    """Return the directories of all completed checkpoints below, newest last."""
    found = [p.parent for p in base.glob("*/chk-*/_metadata") if p.parent.name.removeprefix("chk-").isdigit()]
    return sorted(found, key=lambda p: int(p.name.removeprefix("chk-")))


def newest(base: Path, without: Container[Path] = ()) -> Path | None:
    """Return the newest completed checkpoint below, except for some."""
    return next((p for p in reversed(completed(base)) if p not in without), None)


def is_discarded(checkpoint: Path) -> bool:
    """Return whether a driver has begun to delete a checkpoint: it must refuse to be started from."""
    return any(checkpoint.glob("_discarded-*"))


def inflict(
    damage: Damage, base: Path, chance: random.Random, without: Container[Path] = ()
) -> dict[Path, bytes] | None:
    """Damage the newest checkpoint, or all; return what the damaged files held, or None if there is no checkpoint."""
    done = [p for p in completed(base) if p not in without]
    if not done:
        return None
    victims = done if damage.all_of_them else done[-1:]
    if damage.how == "clutter":
        for victim in victims:
            _clutter(victim.parent, chance)
        return {}
    touched: dict[Path, bytes] = {}
    for victim in victims:
        target = _target(victim, damage.what, chance)
        if target not in touched:
            touched[target] = target.read_bytes()
            _spoil(target, damage.how, chance)
    return touched


def _target(checkpoint: Path, what: str, chance: random.Random) -> Path:
    files = [checkpoint.parent / path for path in state_files(checkpoint)] if what == "state" else []
    there = sorted(path for path in files if path.is_file())
    return chance.choice(there) if there else checkpoint / "_metadata"


def state_files(checkpoint: Path) -> Iterator[str]:
    """Yield the paths in a checkpoint's metadata, without using the code under test."""
    data = (checkpoint / "_metadata").read_bytes()
    start, end = data.find(b"{"), data.rfind(b"}")
    try:
        body = json.loads(data[start : end + 1])
    except ValueError:  # the metadata was damaged before
        return
    stack = [body]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            if isinstance(value.get("path"), str) and "crc32" in value:
                yield value["path"]
            stack += value.values()
        elif isinstance(value, list):
            stack += value


def _spoil(path: Path, how: str, chance: random.Random) -> None:
    data = path.read_bytes()
    match how:
        case "truncate":
            path.write_bytes(data[: chance.randrange(len(data))])
        case "tear":  # the file has its full size, but its end never reached the disk
            at = chance.randrange(len(data))
            path.write_bytes(data[:at] + bytes(len(data) - at))
        case "flip":
            at = chance.randrange(len(data))
            path.write_bytes(data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :])
        case "delete":
            path.unlink()
        case "swap":  # a healthy file of the same job
            others = [*path.parent.glob("*"), *path.parents[1].glob(f"chk-*/{path.name}")]
            _replace(path, [p for p in others if p.is_file()], chance)
        case "foreign":  # a healthy file of another job
            _replace(path, sorted(GOLDEN.rglob("_metadata" if path.name == "_metadata" else "shared/*")), chance)
        case "garbage":
            path.write_bytes(chance.randbytes(max(1, len(data))))
        case _:
            raise AssertionError(how)


def _replace(path: Path, others: list[Path], chance: random.Random) -> None:
    found = sorted(other for other in others if other.read_bytes() != path.read_bytes())
    path.write_bytes(chance.choice(found).read_bytes() if found else b"EKOSTATE" + chance.randbytes(40))


def _clutter(job: Path, chance: random.Random) -> None:
    """Put files there that do not belong to the job and must not matter."""
    (job / "chk-abc").mkdir(exist_ok=True)
    (job / "chk-abc" / "_metadata").write_bytes(b"not ours")
    (job / ".DS_Store").write_bytes(chance.randbytes(10))
    (job / "shared" / "notes.txt").write_text("do not delete")
    unfinished = job / f"chk-{10_000 + chance.randrange(100)}"
    unfinished.mkdir(exist_ok=True)
    (unfinished / "10000-v0-s0-a9.9-00").write_bytes(b"EKOSTATE half of")
    (job / "taskowned").mkdir(exist_ok=True)


def orphans(job: Path) -> list[str]:
    """Return the files of an ended job to which none of its retained checkpoints refers."""
    done = [p.parent for p in job.glob("chk-*/_metadata")]
    needed = {job / path for checkpoint in done for path in state_files(checkpoint)}
    needed |= {checkpoint / "_metadata" for checkpoint in done}
    found = {Path(folder) / name for folder, _, names in os.walk(job) for name in names}
    return sorted(str(p) for p in found - needed if "owner" not in p.parts)
