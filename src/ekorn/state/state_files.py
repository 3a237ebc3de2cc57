"""State files: write and read a payload with its size and checksum, in a file of its own or inside the metadata."""

from __future__ import annotations

import hashlib
import hmac
import struct
import zlib
from dataclasses import replace

from ekorn.errors import CorruptFileError
from ekorn.faults import point
from ekorn.state.snapshots import StateFile
from ekorn.storage.file_store import FileStore
from ekorn.storage.second_look import second_look

# docs/formats/state-file.md: magic, format version, flags, crc32 and size of the payload.
STATE_MAGIC = b"EKOSTATE"
STATE_VERSION = 1
COMPRESSED = 1  # the only flag
MOST_INFLATED = 1040  # deflate compresses at most about 1032 bytes into one
_STATE_HEADER = struct.Struct(">8sHHIQ")
STATE_HEADER_BYTES = _STATE_HEADER.size


def write_state(
    store: FileStore,
    path: str,
    payload: bytes,
    inline_threshold: int,
    *,
    compressed: bool = False,
    hashed: bool = False,
) -> StateFile:
    """Keep a payload: inside the returned value if it is smaller than the threshold, else in a new file at `path`.

    With `compressed` the payload is deflated, unless that saves nothing. With `hashed` a file gets a SHA-256, for
    checkpoints that are signed; bytes inside the metadata need none, since the signature covers them.
    """
    inline = inline_state(payload, compressed=compressed)
    if inline.size < inline_threshold:
        return inline
    assert inline.inline is not None
    flags = 0 if inline.raw_size is None else COMPRESSED
    header = _STATE_HEADER.pack(STATE_MAGIC, STATE_VERSION, flags, inline.crc32, inline.size)
    point("state-file")
    store.write(path, header + inline.inline)
    sha256 = hashlib.sha256(inline.inline).hexdigest() if hashed else None
    return replace(inline, path=path, inline=None, sha256=sha256)


def inline_state(payload: bytes, *, compressed: bool = False) -> StateFile:
    """Return a payload with its size and checksum, without a file."""
    raw_size = None
    if compressed and len(packed := zlib.compress(payload, 1)) < len(payload):
        payload, raw_size = packed, len(payload)
    return StateFile(size=len(payload), crc32=zlib.crc32(payload), inline=payload, raw_size=raw_size)


def read_state(store: FileStore, state_file: StateFile) -> bytes:
    """Read a payload and check that it is the one that was written.

    Raises:
        CorruptFileError: The file is missing, torn, changed, foreign, or of a newer format.
    """
    return bytes(state_view(store, state_file))


def state_view(store: FileStore, state_file: StateFile) -> bytes | memoryview:
    """Read and check a payload as `read_state` does, without a copy of it.

    Raises:
        CorruptFileError: The file is missing, torn, changed, foreign, or of a newer format.
    """
    if state_file.path is None:
        assert state_file.inline is not None, "a state file has a path or the bytes themselves"
        where = "(state kept inside the metadata)"
        _check_payload(where, state_file.inline, state_file, zlib.crc32(state_file.inline))
        return _inflated(where, state_file.inline, state_file)
    where = f"{store.url}/{state_file.path}"
    return _read_checked(store, state_file, where)[1]


def _read_checked(store: FileStore, state_file: StateFile, where: str) -> tuple[bytes, bytes | memoryview]:
    """Return the bytes of a state file, and the payload in them after checking it."""
    path = state_file.path
    assert path is not None

    def read() -> tuple[bytes, bytes | memoryview]:
        try:
            data = store.read(path)
        except FileNotFoundError:
            raise CorruptFileError(where, "no such file", _expected(state_file)) from None
        return data, state_in(data, state_file, where)

    return second_look(read)


def state_in(data: bytes, state_file: StateFile, where: str) -> bytes | memoryview:
    """Return the payload in the bytes of a state file, after checking it; `where` names the file in errors.

    Raises:
        CorruptFileError: The bytes are torn, changed, foreign, or of a newer format.
    """
    if len(data) < STATE_HEADER_BYTES:
        raise CorruptFileError(where, f"{len(data)} bytes, less than a header", _expected(state_file))
    magic, version, flags, crc32, size = _STATE_HEADER.unpack_from(data)
    if magic != STATE_MAGIC:
        raise CorruptFileError(where, f"a file that starts with {bytes(magic)!r}", f"a state file ({STATE_MAGIC!r})")
    if version != STATE_VERSION or flags not in (0, COMPRESSED):
        found = f"state format version {version} with flags {flags:#x}"
        raise CorruptFileError(where, found, f"version {STATE_VERSION}, which is the newest this release reads")
    payload = memoryview(data)[STATE_HEADER_BYTES:]
    found_crc32 = zlib.crc32(payload)
    # The bytes must agree with the header, which reveals damage, and with the metadata, which reveals an undamaged file
    # that belongs somewhere else.
    _check_payload(where, payload, StateFile(size=size, crc32=crc32, inline=b""), found_crc32)
    _check_payload(where, payload, state_file, found_crc32)
    if (flags == COMPRESSED) is not (state_file.raw_size is not None):
        found = "compressed" if flags == COMPRESSED else "not compressed"
        raise CorruptFileError(where, f"state that is {found}", "the opposite, which the metadata says")
    return _inflated(where, payload, state_file)


def hashed_state(store: FileStore, state_file: StateFile) -> StateFile:
    """Check a payload, and return its description with the SHA-256 that a signature protects.

    Raises:
        CorruptFileError: The payload is missing or damaged.
    """
    if state_file.path is None:
        read_state(store, state_file)
        return state_file  # the signature covers the bytes themselves
    where = f"{store.url}/{state_file.path}"
    data, _ = _read_checked(store, state_file, where)
    return replace(state_file, sha256=hashlib.sha256(memoryview(data)[STATE_HEADER_BYTES:]).hexdigest())


def copy_state(store: FileStore, state_file: StateFile, target: FileStore, path: str, *, hashed: bool) -> StateFile:
    """Copy a payload to a new file in another store, after checking it; one inside the metadata stays there.

    Raises:
        CorruptFileError: The payload is missing or damaged.
    """
    if state_file.path is None:
        read_state(store, state_file)
        return state_file
    where = f"{store.url}/{state_file.path}"
    data, _ = _read_checked(store, state_file, where)
    target.write(path, data)
    digest = hashlib.sha256(memoryview(data)[STATE_HEADER_BYTES:]).hexdigest() if hashed else None
    return replace(state_file, path=path, sha256=digest)


def check_state(store: FileStore, state_file: StateFile, *, full: bool) -> None:
    """Check a payload: that it exists and has the right size, and with `full` also its checksum.

    Raises:
        CorruptFileError: The payload is missing or damaged.
    """
    if full or state_file.path is None:
        read_state(store, state_file)
        return
    where = f"{store.url}/{state_file.path}"
    try:
        size = store.size(state_file.path)
    except FileNotFoundError:
        raise CorruptFileError(where, "no such file", _expected(state_file)) from None
    if size != STATE_HEADER_BYTES + state_file.size:
        raise CorruptFileError(where, f"{size} bytes", f"{STATE_HEADER_BYTES + state_file.size} bytes")


def _inflated(where: str, payload: bytes | memoryview, proof: StateFile) -> bytes | memoryview:
    """Decompress a payload, but never to more bytes than the metadata says."""
    if proof.raw_size is None:
        return payload
    expected = f"{proof.raw_size} bytes of state, compressed"
    if proof.raw_size > MOST_INFLATED * (len(payload) + 1):
        raise CorruptFileError(where, f"{len(payload)} bytes, which cannot contain that much", expected)
    unpacker = zlib.decompressobj()
    try:
        raw = unpacker.decompress(payload, proof.raw_size + 1)
    except zlib.error as error:
        raise CorruptFileError(where, f"bytes that cannot be unpacked ({error})", expected) from None
    if len(raw) != proof.raw_size or not unpacker.eof or unpacker.unused_data:
        raise CorruptFileError(where, "other bytes when unpacked", expected)
    return raw


def _check_payload(where: str, payload: bytes | memoryview, proof: StateFile, crc32: int) -> None:
    if len(payload) != proof.size:
        raise CorruptFileError(where, f"{len(payload)} bytes of state", _expected(proof))
    if crc32 != proof.crc32:
        raise CorruptFileError(where, f"crc32 {crc32:08x}", _expected(proof))
    if proof.sha256 is not None:
        sha256 = hashlib.sha256(payload).hexdigest()
        if not hmac.compare_digest(sha256, proof.sha256):
            raise CorruptFileError(where, f"SHA-256 {sha256}", f"SHA-256 {proof.sha256}, which the metadata signs")


def _expected(proof: StateFile) -> str:
    return f"{proof.size} bytes of state with crc32 {proof.crc32:08x}"
