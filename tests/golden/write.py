"""Writes the checkpoints of this release into tests/golden/<format version>. Run once for every format version.

    PYTHONPATH=src:tests/golden/programs python -m tests.golden.write

It refuses to write a folder that exists: what a release wrote stays as it was written.
"""

import contextlib
import json
import shutil
import tempfile
from pathlib import Path

import in_flight_program
import raw_program
from golden_program import FILLED, draw, environment

from ekorn.checkpoint.metadata import CheckpointMetadata
from ekorn.checkpoint.metadata_file import decode_metadata
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.testing.scripted import Crash, DriverDied, Script, run_scripted, start_scripted

HERE = Path(__file__).parent
BACKENDS = ("hashmap", "rocksdb")
IN_FLIGHT_TURNS = 2


def write(target, backend):
    """Run the program until all its states are filled; keep its newest checkpoint and the files that it refers to."""
    with tempfile.TemporaryDirectory() as folder:
        script = Script(crashes=[Crash("after-epoch", FILLED + 1)], driver_dies=True)
        with contextlib.suppress(DriverDied):
            start_scripted(draw(environment(folder, 2)), script, state_backend=backend)
        newest, _ = keep_newest(Path(folder), target)
        told = run_scripted(draw(environment(folder, 2)), restore_path=str(newest), state_backend=backend).records
    (target / "expected.json").write_text(json.dumps(sorted(told), indent=1) + "\n")


def keep_newest(folder: Path, target: Path) -> tuple[Path, CheckpointMetadata]:
    """Copy the newest checkpoint of a job, with the files that it refers to."""
    newest = max(folder.glob("*/chk-*/_metadata"), key=lambda path: int(path.parent.name[4:])).parent
    metadata = decode_metadata((newest / "_metadata").read_bytes(), str(newest))
    for path in [f"{newest.name}/_metadata", *sorted(metadata.paths())]:
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(newest.parent / path, target / path)
    return newest, metadata


def write_in_flight(target: Path) -> None:
    """Keep an unaligned checkpoint, and what the program emits when it goes on from there."""
    with tempfile.TemporaryDirectory() as folder:
        script = Script(crashes=[Crash("after-epoch", 6)], driver_dies=True, turns=IN_FLIGHT_TURNS)
        with contextlib.suppress(DriverDied):
            start_scripted(in_flight_program.draw(unaligned(folder, 2)), script)
        newest, metadata = keep_newest(Path(folder), target)
        assert metadata.format_version == 2, "blobs are in flight"
        told = run_scripted(in_flight_program.draw(unaligned(folder, 2)), restore_path=str(newest)).records
    (target / "told.json").write_text(json.dumps(sorted(told), indent=1) + "\n")


def write_raw(target: Path) -> None:
    """Keep a checkpoint with raw state, and what the program tells when it goes on from there."""
    with tempfile.TemporaryDirectory() as folder:
        script = Script(crashes=[Crash("after-epoch", raw_program.FILLED)], driver_dies=True)
        with contextlib.suppress(DriverDied):
            start_scripted(raw_program.draw(raw_program.environment(folder, 2)), script)
        newest, _ = keep_newest(Path(folder), target)
        stream = raw_program.draw(raw_program.environment(folder, 2))
        told = run_scripted(stream, restore_path=str(newest)).records
    (target / "expected.json").write_text(json.dumps(sorted(told), indent=1) + "\n")


def unaligned(folder: str | Path, parallelism: int) -> StreamExecutionEnvironment:
    env = environment(folder, parallelism)
    env.get_checkpoint_config().enable_unaligned_checkpoints()
    return env


def main():
    for backend in BACKENDS:
        target = HERE / "1" / backend  # a checkpoint without blobs in flight has this version
        if target.exists():
            print(f"{target} exists; it stays as it is")
        else:
            write(target, backend)
    if (HERE / "2" / "in-flight").exists():
        print("the unaligned checkpoint exists; it stays as it is")
    else:
        write_in_flight(HERE / "2" / "in-flight")
    if (HERE / "raw").exists():
        print("the checkpoint with raw state exists; it stays as it is")
    else:
        write_raw(HERE / "raw")


if __name__ == "__main__":
    main()
