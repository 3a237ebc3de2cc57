"""Files at paths of the user have the modes of the user's umask, in processes that have the private umask."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ekorn.storage.result_modes import PRIVATE_UMASK, USERS_UMASK, with_users_umask

PROGRAM = """
import os, sys
from ekorn.storage.durable import create_file, make_directory
from ekorn.storage.result_modes import with_users_umask
make_directory(sys.argv[1])
create_file(os.path.join(sys.argv[1], "result"), b"x")
open(os.path.join(sys.argv[1], "temporary"), "w").close()
print(sorted(with_users_umask({}).values()))
"""


@pytest.mark.parametrize(
    ("users", "folder", "file"), [(0o022, 0o755, 0o644), (0o002, 0o775, 0o664), (0o077, 0o700, 0o600)]
)
def test_results_have_the_modes_of_the_users_umask(tmp_path: Path, users: int, folder: int, file: int) -> None:
    before = os.umask(users)
    try:
        environment = with_users_umask(os.environ)
    finally:
        os.umask(before)
    target = tmp_path / "a" / "b"
    child = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(target)],
        env=environment | {"PYTHONPATH": os.pathsep.join(sys.path)},
        umask=PRIVATE_UMASK,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "a", target, *target.iterdir())}
    assert modes == {"a": folder, "b": folder, "result": file, "temporary": 0o600}
    assert child.stdout.strip() == f"['{users:03o}']", "a process that it starts is told the same umask"
    assert USERS_UMASK not in os.environ
