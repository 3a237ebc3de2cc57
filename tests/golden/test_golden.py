"""Checkpoints that earlier releases wrote are restored, and hold what they held."""

import json
import shutil
from pathlib import Path

import in_flight_program
import pytest
from golden_program import FILLED, draw, environment

from ekorn.checkpoint.restore_point import resolve
from ekorn.testing.scripted import Script, run_scripted

HERE = Path(__file__).parent
GOLDEN = sorted(path.parent.relative_to(HERE) for path in HERE.glob("*/*/expected.json"))


@pytest.mark.heavy  # every stored checkpoint in every backend
@pytest.mark.parametrize(("backend", "parallelism"), [("hashmap", 2), ("hashmap", 3), ("rocksdb", 1)])
@pytest.mark.parametrize("golden", GOLDEN, ids=str)
def test_an_old_checkpoint_is_restored_whole(golden, backend, parallelism, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(HERE / golden, copy)  # a checkpoint may be moved
    (checkpoint,) = copy.glob("chk-*")
    stream = draw(environment(tmp_path / "new", parallelism))
    run = run_scripted(stream, restore_path=str(checkpoint), state_backend=backend)
    assert sorted(run.records) == json.loads((copy / "expected.json").read_text())


def test_what_is_told_is_what_an_undisturbed_run_tells(tmp_path):
    assert GOLDEN, "there are old checkpoints"
    told = sorted(run_scripted(draw(environment(tmp_path, 2))).records)
    for golden in GOLDEN:
        expected = json.loads((HERE / golden / "expected.json").read_text())
        missing = [line for line in expected if line not in told]
        assert not missing
        assert len(expected) > 100 and any("PROCESSING_TIME" in line for line in expected) and FILLED == 4


@pytest.mark.parametrize("turns", [None, 3])
@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_the_records_in_flight_of_an_old_checkpoint_are_restored(turns, parallelism, tmp_path):
    (checkpoint,) = (HERE / "2" / "in-flight").glob("chk-*")
    metadata = resolve(str(checkpoint)).metadata
    in_flight = [part for operator in metadata.operators for part in operator.in_flight if part is not None]
    assert metadata.format_version == 2 and in_flight
    stream = in_flight_program.draw(environment(tmp_path, parallelism))
    run = run_scripted(stream, Script(turns=turns), restore_path=str(checkpoint))
    assert sorted(run.records) == json.loads((HERE / "2" / "in-flight" / "told.json").read_text())
