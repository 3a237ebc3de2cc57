"""Writes the checkpoints of this release into tests/golden/<format version>. Run once for every format version.

    PYTHONPATH=src:tests/golden/programs python -m tests.golden.write

It refuses to write a folder that exists: what a release wrote stays as it was written.
"""

import contextlib
import json
import shutil
import tempfile
from pathlib import Path

from golden_program import FILLED, draw, environment

from tamias.checkpoint.metadata import FORMAT_VERSION, decode_metadata
from tamias.testing.scripted import Crash, DriverDied, Script, run_scripted, start_scripted

HERE = Path(__file__).parent
BACKENDS = ("hashmap", "rocksdb")


def write(target, backend):
    """Run the program until all its states are filled; keep its newest checkpoint and the files that it refers to."""
    with tempfile.TemporaryDirectory() as folder:
        script = Script(crashes=[Crash("after-epoch", FILLED + 1)], driver_dies=True)
        with contextlib.suppress(DriverDied):
            start_scripted(draw(environment(folder, 2)), script, state_backend=backend)
        newest = max(Path(folder).glob("*/chk-*/_metadata"), key=lambda path: int(path.parent.name[4:])).parent
        metadata = decode_metadata((newest / "_metadata").read_bytes(), str(newest))
        for path in [f"{newest.name}/_metadata", *sorted(metadata.paths())]:
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(newest.parent / path, target / path)
        told = run_scripted(draw(environment(folder, 2)), restore_path=str(newest), state_backend=backend).records
    (target / "expected.json").write_text(json.dumps(sorted(told), indent=1) + "\n")


def main():
    for backend in BACKENDS:
        target = HERE / str(FORMAT_VERSION) / backend
        if target.exists():
            print(f"{target} exists; it stays as it is")
            continue
        write(target, backend)
        print(f"wrote {target}: {sum(f.stat().st_size for f in target.rglob('*') if f.is_file())} bytes")


if __name__ == "__main__":
    main()
