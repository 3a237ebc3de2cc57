"""Savepoints made by an attacker, read as tables of Spark: each is refused, and nothing runs or is written.

State itself is a program (`docs/reliability.md`), unless the savepoint has to be signed.
"""

from __future__ import annotations

import pickle
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ekorn.errors import EkornError
from ekorn.state_processor.spark.registration import EkornStateMetadataSource, EkornStateSource
from tests.reliability.forged_savepoints import ATTACKS, Trap, first_file, hostile_keys, keyed, replace_state, rewrite
from tests.state_processor.programs import KEYS, every_kind, savepoint_of

UID = {"operatorUid": "every-kind"}


@pytest.fixture(scope="module", params=["hashmap", "rocksdb"])
def good(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a savepoint whose state is in files."""
    return Path(savepoint_of(every_kind, tmp_path_factory.mktemp("good"), backend=request.param, native=True))


@pytest.fixture
def savepoint(good: Path, tmp_path: Path) -> Path:
    shutil.copytree(good, tmp_path / "savepoint")
    return tmp_path / "savepoint"


def rows(path: Path, **options: str) -> list[dict[str, Any]]:
    """Read all partitions, as Spark's tasks do."""
    source = EkornStateSource({"path": str(path), **UID, **options})
    reader = source.reader(source.schema())
    batches = [batch for partition in reader.partitions() for batch in reader.read(partition)]
    return [row for batch in batches for row in batch.to_pylist()]


def metadata_rows(path: Path) -> list[Any]:
    source = EkornStateMetadataSource({"path": str(path)})
    reader = source.reader(source.schema())
    return [row for partition in reader.partitions() for row in reader.read(partition)]


def everything_in(folder: Path) -> dict[str, bytes | None]:
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in folder.rglob("*")}


def test_the_savepoint_is_read_as_long_as_it_is_unchanged(savepoint: Path) -> None:
    assert len(rows(savepoint)) == KEYS and metadata_rows(savepoint)


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_savepoint_with_malicious_metadata_is_refused(attack: str, savepoint: Path, tmp_path: Path) -> None:
    rewrite(savepoint, ATTACKS[attack])
    before = everything_in(tmp_path)
    with pytest.raises(EkornError):
        rows(savepoint)
    with suppress(EkornError):  # a table of what the metadata says opens no state
        metadata_rows(savepoint)
    assert everything_in(tmp_path) == before, "something was written or deleted"


@pytest.mark.parametrize("where", ["_metadata", "state"])
def test_a_pickle_in_the_place_of_a_file_is_not_unpickled(where: str, savepoint: Path, tmp_path: Path) -> None:
    for victim in [p for p in savepoint.iterdir() if (p.name == "_metadata") == (where == "_metadata")]:
        victim.write_bytes(pickle.dumps(Trap(tmp_path / "mark")))
    with pytest.raises(EkornError):
        rows(savepoint)
    assert not (tmp_path / "mark").exists()


def test_forged_state_is_refused_where_the_configuration_names_a_key(
    savepoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").write_bytes(b"k" * 32)
    (tmp_path / "key").chmod(0o600)
    (tmp_path / "config.yaml").write_text(f"ekorn.checkpoint.signing-key-file: {tmp_path / 'key'}\n")
    monkeypatch.setenv("EKORN_CONF_DIR", str(tmp_path))

    def forge(document: dict[str, Any]) -> None:
        path = savepoint / first_file(document)["path"]
        first_file(document).update(replace_state(path, hostile_keys(tmp_path / "mark")))
        keyed(document).pop("names", None)

    rewrite(savepoint, forge)
    with pytest.raises(EkornError, match="signing-key-file"):
        rows(savepoint)
    assert not (tmp_path / "mark").exists()
