"""`ekorn savepoint list`, `show`, `dispose`, `sign` and `verify`: commands for savepoints, which need no job."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ekorn.checkpoint.describe import describe
from ekorn.checkpoint.restore_point import resolve
from ekorn.checkpoint.savepoint_files import FoundCheckpoint, dispose_savepoint, find_checkpoints
from ekorn.checkpoint.savepoint_signing import sign_savepoint, verify_savepoint
from ekorn.checkpoint.signing import SigningKey, read_signing_key
from ekorn.config import options
from ekorn.config.starting_configuration import starting_configuration
from ekorn.config.value_text import size_text
from ekorn.errors import ConfigurationError
from ekorn.errors.base import printable
from ekorn.storage.locations import plain, scheme_of, shown

__all__ = ["absolute", "configured_key", "dispose", "list_all", "print_table", "show", "sign", "verify"]


def absolute(path: str) -> str:
    """Return a path as an absolute path, which does not depend on the current folder; a URL unchanged."""
    path = plain(path)
    return path if scheme_of(path) else os.path.abspath(path)


def list_all(directory: str) -> int:
    """Print a line for each savepoint and completed checkpoint. The exit code is 1 if there is none."""
    rows = [_row(found) for found in find_checkpoints(absolute(directory), key=configured_key())]
    if not rows:
        print(f"no savepoints and no completed checkpoints below {shown(directory)}", file=sys.stderr)
        return 1
    print_table([("path", "kind", "number", "job", "operators", "state"), *rows])
    return 0


MOST_OF_A_NAME = 80  # characters of a name in a table or a sentence


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows with aligned columns. Characters that could steer the terminal are escaped."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _row(found: FoundCheckpoint) -> tuple[str, str, str, str, str, str]:
    metadata = found.metadata
    if metadata is None:
        return found.path, "unreadable", "", "", "", found.why
    return (
        found.path,
        metadata.kind,
        str(metadata.checkpoint_id),
        printable(metadata.job_name, MOST_OF_A_NAME),
        str(len(metadata.operators)),
        size_text(metadata.state_bytes),
    )


def show(path: str) -> int:
    """Print the contents of a savepoint or checkpoint."""
    print(describe(absolute(path), configured_key()))
    return 0


def dispose(path: str) -> int:
    """Delete a savepoint or checkpoint."""
    key = configured_key()
    metadata = resolve(absolute(path), key)[1]
    dispose_savepoint(absolute(path), key)
    print(f"disposed of {metadata.kind} {metadata.checkpoint_id} of job {metadata.job_name!r}, {shown(path)}")
    return 0


def sign(path: str, key_file: str | None) -> int:
    """Sign a savepoint or retained checkpoint."""
    metadata = sign_savepoint(absolute(path), _needed_key(key_file)).metadata
    print(f"signed {metadata.kind} {metadata.checkpoint_id} of job {metadata.job_name!r}, {shown(path)}")
    return 0


def verify(path: str, key_file: str | None) -> int:
    """Verify the signature and all files of a savepoint or checkpoint."""
    metadata = verify_savepoint(absolute(path), _needed_key(key_file)).metadata
    print(
        f"verified {metadata.kind} {metadata.checkpoint_id} of job {metadata.job_name!r}, {shown(path)}: signed with "
        f"this key, {size_text(metadata.state_bytes)} of state unchanged"
    )
    return 0


def _needed_key(key_file: str | None) -> SigningKey:
    key = read_signing_key(key_file, "--key-file") if key_file is not None else configured_key()
    if key is None:
        raise ConfigurationError(f"no key: give --key-file FILE, or set {options.SIGNING_KEY_FILE.key} in config.yaml")
    return key


def configured_key() -> SigningKey | None:
    """Return the key that the configuration file names: the commands refuse what jobs refuse."""
    return read_signing_key(options.SIGNING_KEY_FILE.read(starting_configuration()))
