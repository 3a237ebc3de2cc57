"""Savepoints that an attacker changed: rewritten metadata with the right checksum, and pickles that leave a mark."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

Document = dict[str, Any]


class Trap:
    """Leaves a mark when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.mark),)


def rewrite(savepoint: Path, change: Callable[[Document], object]) -> None:
    """Change the document of the metadata, and correct its size and checksum."""
    body = json.loads((savepoint / "_metadata").read_bytes().partition(b"\n")[2])
    change(body)
    data = json.dumps(body).encode()
    header = f"TAMIAS-CHECKPOINT 2 {len(data)} {zlib.crc32(data):08x}\n"
    (savepoint / "_metadata").write_bytes(header.encode() + data)


def keyed(document: Document) -> Document:
    """Return the entry of the subtask's keyed state."""
    parts = [part for operator in document["operators"] for part in operator["subtasks"] if part and part["keyed"]]
    return dict(parts[0])["keyed"]  # type: ignore[no-any-return]


def first_file(document: Document) -> Document:
    return keyed(document)["files"][0]  # type: ignore[no-any-return]
