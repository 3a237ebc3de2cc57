"""The commands for savepoints on files that an attacker wrote, with correct checksums.

A command answers with a result or a reason; it never shows a traceback, runs or writes nothing, and what it prints
cannot steer the terminal.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from ekorn.cli.main import main
from tests.reliability.forged_savepoints import ATTACKS, Document, rewrite
from tests.state_processor.programs import every_kind, savepoint_of

STEERING = "\x1b[2J\x07\x9b\u202e\n"
UID = "every-kind"


def states(document: Document) -> list[Document]:
    return [state for operator in document["operators"] for state in operator["states"]]


def operators(document: Document) -> list[Document]:
    return [operator for operator in document["operators"] if operator["uid"] != UID]


NAMES: dict[str, Callable[[Document], object]] = {
    "job": lambda d: d.update(job_name=STEERING, job_id=STEERING),
    "operators": lambda d: [each.update(name=STEERING, uid=f"{STEERING}{n}") for n, each in enumerate(operators(d))],
    "states": lambda d: [each.update(name=each["name"] + STEERING) for each in states(d)],
    "types": lambda d: [each.update(type=STEERING) for each in states(d)],
    "kinds": lambda d: [each.update(kind=STEERING, ttl=False) for each in states(d)],
}


class Good(NamedTuple):
    """Two savepoints of one job with state in files, and a function that changes no state."""

    savepoint: Path
    earlier: Path
    function: Path


COMMANDS: dict[str, Callable[[Good, Path], list[str]]] = {
    "list": lambda good, bad: ["savepoint", "list", str(bad.parent)],
    "show": lambda good, bad: ["savepoint", "show", str(bad)],
    "state": lambda good, bad: ["state", "show", str(bad), "--sample", "3"],
    "get": lambda good, bad: ["state", "get", str(bad), UID, "1"],
    "diff": lambda good, bad: ["state", "diff", str(bad), str(good.earlier)],
    "export": lambda good, bad: ["state", "export", str(bad), UID, str(bad.parent / "exported")],
    "edit": lambda good, bad: ["state", "edit", str(bad), UID, f"{good.function}:keep", str(bad.parent / "new")],
}


@pytest.fixture(scope="module", params=["hashmap", "rocksdb"])
def good(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Good:
    def savepoint(after: int) -> Path:
        folder = tmp_path_factory.mktemp("good")
        return Path(savepoint_of(every_kind, folder, backend=request.param, native=True, after=after))

    function = tmp_path_factory.mktemp("function") / "keep.py"
    function.write_text("def keep(key, states):\n    return states\n")
    return Good(savepoint(after=3), savepoint(after=2), function)


def changed(good: Good, folder: Path, change: Callable[[Document], object]) -> Path:
    shutil.copytree(good.savepoint, folder / "savepoint")
    rewrite(folder / "savepoint", change)
    return folder / "savepoint"


def contents(folder: Path) -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_command_refuses_malicious_metadata_or_answers_without_what_it_names(
    attack: str, good: Good, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = changed(good, tmp_path, ATTACKS[attack])
    before = contents(tmp_path)
    for name, command in COMMANDS.items():
        code = main(command(good, bad))  # an error of the package becomes a code and a line; any other is raised
        out, err = capsys.readouterr()
        assert code == 0 or err, name
        assert all(line.isprintable() for line in (out + err).split("\n")), name
        for made in ("exported", "new"):
            shutil.rmtree(tmp_path / made, ignore_errors=True)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("where", NAMES)
def test_names_in_a_savepoint_cannot_steer_the_terminal(
    where: str, command: str, good: Good, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = changed(good, tmp_path, NAMES[where])
    main(COMMANDS[command](good, bad))
    out, err = capsys.readouterr()
    assert out + err and all(line.isprintable() for line in (out + err).split("\n"))


def test_a_state_of_an_unknown_kind_has_no_time_to_live(
    good: Good, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """How long an entry lives depends on what it looks like, which the kind says."""
    bad = changed(good, tmp_path, lambda d: [each.update(kind="unknown", ttl=True) for each in states(d)])
    assert main(["savepoint", "show", str(bad)]) == 1
    assert "a state of kind 'unknown' with a time to live" in capsys.readouterr().err
