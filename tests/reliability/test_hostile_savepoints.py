"""Savepoints made by an attacker, with correct checksums, are refused with a reason: nothing runs, nothing is written.

One attack cannot be refused: state is pickled, so an attacker who writes the state itself with its checksum writes a
program (`docs/reliability.md`). These tests show that nothing else in a savepoint is executed.
"""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest

from ekorn.common import WatermarkStrategy
from ekorn.datastream import DataStream
from ekorn.errors import EkornError
from ekorn.testing.scripted import Run, Script, ScriptedSource, run_scripted
from tests.live_jobs import environment, expected_tally, tallied
from tests.reliability.forged_savepoints import ATTACKS, Document, Trap, hostile_table, keyed, replace_state, rewrite

KEYS, RECORDS = 5, 40
SEEN: list[int] = []


def note(number: int) -> int:
    SEEN.append(number)
    return number


def job(backend: str, directory: Path | None = None) -> DataStream:
    env = environment(directory, state__backend__type=backend, execution__checkpointing__data_inline_threshold=0)
    source = ScriptedSource([list(range(RECORDS))], [4])
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    return tallied(numbers.map(note).uid("note"), KEYS)


@pytest.fixture(scope="module", params=["hashmap", "rocksdb"])
def good(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Return a backend's name and a savepoint in its native format."""
    asked: list[Any] = []
    folder = tmp_path_factory.mktemp("good")
    deed = {4: lambda handle: asked.append(handle.request_savepoint(str(folder), native=True, then="stop"))}
    run_scripted(job(request.param, folder / "checkpoints"), Script(deeds=deed))
    return request.param, Path(asked[0].result(0))


def attempt(backend: str, savepoint: Path) -> Run | EkornError:
    SEEN.clear()
    try:
        return run_scripted(job(backend), restore_path=str(savepoint))
    except EkornError as error:
        return error


def everything_in(folder: Path) -> dict[str, bytes | None]:
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in folder.rglob("*")}


def refused(backend: str, savepoint: Path, folder: Path) -> str:
    before = everything_in(folder)
    found = attempt(backend, savepoint)
    assert isinstance(found, EkornError), "it was restored"
    assert SEEN == [], "records were processed"
    assert everything_in(folder) == before, "something was written or deleted"
    return str(found)


def test_the_savepoint_is_restored_as_long_as_it_is_unchanged(good: tuple[str, Path]) -> None:
    backend, savepoint = good
    found = attempt(backend, savepoint)
    assert isinstance(found, Run) and found.records == expected_tally(RECORDS, KEYS)[-len(found.records) :]
    assert 0 < len(found.records) < RECORDS


@pytest.mark.parametrize("attack", ATTACKS)
def test_malicious_metadata_is_refused(attack: str, good: tuple[str, Path], tmp_path: Path) -> None:
    backend, original = good
    savepoint = tmp_path / "savepoint"
    shutil.copytree(original, savepoint)
    rewrite(savepoint, ATTACKS[attack])
    assert refused(backend, savepoint, tmp_path)


@pytest.mark.parametrize("where", ["_metadata", "state"])
def test_a_pickle_in_the_place_of_a_file_is_not_unpickled(where: str, good: tuple[str, Path], tmp_path: Path) -> None:
    backend, original = good
    savepoint = tmp_path / "savepoint"
    shutil.copytree(original, savepoint)
    victims = [p for p in savepoint.iterdir() if (p.name == "_metadata") == (where == "_metadata")]
    for victim in victims:
        victim.write_bytes(pickle.dumps(Trap(tmp_path / "mark")))
    message = refused(backend, savepoint, tmp_path)
    assert any(victim.name in message for victim in victims)


@pytest.mark.parametrize("reader", ["hashmap", "rocksdb"])
def test_the_table_of_names_around_the_state_runs_nothing(reader: str, good: tuple[str, Path], tmp_path: Path) -> None:
    _, original = good
    savepoint = tmp_path / "savepoint"
    shutil.copytree(original, savepoint)
    described: list[str] = []

    def forge(document: Document) -> None:
        part = keyed(document)
        file = replace_state(savepoint / part["files"][0]["path"], hostile_table(tmp_path / "mark"))
        part.update(files=[file | {"path": part["files"][0]["path"]}])
        part.pop("format", None), part.pop("names", None)
        described.append(part["files"][0]["path"])

    rewrite(savepoint, forge)
    message = refused(reader, savepoint, tmp_path)
    assert (
        "expected keyed state (b'EKOK')" in message
        and described[0] in message
        and "keyed state of operator 'tally'" in message
    )


@pytest.mark.parametrize("where", ["_metadata", "state", "savepoint"])
def test_symbolic_links_in_place_of_files_are_refused(where: str, good: tuple[str, Path], tmp_path: Path) -> None:
    """Links in place of files are refused. A link to the whole savepoint is the user's own choice."""
    backend, original = good
    savepoint, outside = tmp_path / "savepoint", tmp_path / "outside"
    shutil.copytree(original, savepoint)
    if where == "savepoint":
        savepoint.rename(outside)
        savepoint.symlink_to(outside)
        assert isinstance(attempt(backend, savepoint), Run)
        return
    victim = next(p for p in sorted(savepoint.iterdir()) if (p.name == "_metadata") == (where == "_metadata"))
    victim.rename(outside)
    victim.symlink_to(outside)
    assert "is outside" in refused(backend, savepoint, tmp_path)


def test_the_state_of_another_job_is_refused_by_the_operators_it_has(good: tuple[str, Path], tmp_path: Path) -> None:
    backend, original = good
    savepoint = tmp_path / "savepoint"
    shutil.copytree(original, savepoint)

    def strange(document: Document) -> None:
        for number, operator in enumerate(document["operators"]):
            operator.update(id=f"{number:032x}", uid=f"strange-{number}")

    rewrite(savepoint, strange)
    assert "strange-" in refused(backend, savepoint, tmp_path)
