"""Savepoints that an attacker changed: rewritten metadata with the right checksum, and pickles that leave a mark."""

from __future__ import annotations

import base64
import json
import os
import pickle
import struct
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
    header = f"EKORN-CHECKPOINT 1 {len(data)} {zlib.crc32(data):08x}\n"
    (savepoint / "_metadata").write_bytes(header.encode() + data)


def keyed(document: Document) -> Document:
    """Return the entry of the subtask's keyed state."""
    parts = [part for operator in document["operators"] for part in operator["subtasks"] if part and part["keyed"]]
    return dict(parts[0])["keyed"]


def first_file(document: Document) -> Document:
    return keyed(document)["files"][0]


def replace_state(file: Path, payload: bytes) -> Document:
    """Write a state file with a correct header, and return its description without a digest."""
    crc32 = zlib.crc32(payload)
    file.write_bytes(struct.pack(">8sHHIQ", b"EKOSTATE", 1, 0, crc32, len(payload)) + payload)
    return {"size": len(payload), "crc32": f"{crc32:08x}"}


def hostile_keys(mark: Path) -> bytes:
    """Return keyed state with a key that leaves a mark: state that an attacker wrote is a program."""
    entries = pickle.dumps(([Trap(mark)], [1], []))
    return b"EKOK\x01" + struct.pack(">IBQ", 4, 5, len(entries)) + b"namevalue" + entries


def hostile_table(mark: Path) -> bytes:
    """Return keyed state without magic or version: a pickle that leaves a mark, behind its length."""
    table = pickle.dumps((Trap(mark), "value", [1], [1], []))
    return len(table).to_bytes(4, "little") + table


def proof(data: bytes) -> Document:
    return {"size": len(data), "crc32": f"{zlib.crc32(data):08x}"}


def inline(data: bytes) -> Document:
    return proof(data) | {"inline": base64.b64encode(data).decode()}


def replaced(document: Document, file: Document) -> None:
    keyed(document)["files"][0] = file


def named(document: Document, name: str) -> None:
    """Return RocksDB's own name of a file, under which it is written in the slot's folder."""
    part = keyed(document)
    part |= {"format": "rocksdb", "names": [name] * len(part["files"])}


BOMB = zlib.compress(bytes(50_000_000))
ATTACKS: dict[str, Callable[[Document], object]] = {
    "path above": lambda d: first_file(d).update(path="../outside"),
    "absolute path": lambda d: first_file(d).update(path="/etc/passwd"),
    "path with a drive": lambda d: first_file(d).update(path="C:/windows/system32"),
    "path of nothing": lambda d: first_file(d).update(path=""),
    "name above": lambda d: named(d, "../../outside.sst"),
    "absolute name": lambda d: named(d, "/tmp/outside.sst"),
    "name of settings": lambda d: named(d, "OPTIONS-000001"),
    "unknown format": lambda d: keyed(d).update(format="pickle", names=[]),
    "bomb of its promised size": lambda d: replaced(d, inline(BOMB) | {"raw_size": 50_000_000_000}),
    "bomb of another size": lambda d: replaced(d, inline(BOMB) | {"raw_size": 1_000}),
    "metadata of metadata": lambda d: d.update(operators=d["operators"] * 2),
    "too many key groups": lambda d: keyed(d).update(key_groups=[0, 10**9]),
    "a billion subtasks": lambda d: d["operators"][0].update(parallelism=10**9, max_parallelism=10**9),
    "size below zero": lambda d: first_file(d).update(size=-1),
    "schema that is none": lambda d: d["operators"][0].update(states=[{"name": "x", "kind": "value", "type": 7}]),
}
