"""The `_metadata` file: the metadata of a checkpoint as bytes.

The file is a header line with size and checksum, followed by JSON: people can read it, and it holds no pickled class.
A checkpoint exists when this file exists. `checkpoint_directory.py` decides where the file lies.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import replace
from typing import Any

from ekorn.checkpoint.metadata import FORMAT_VERSION, CheckpointMetadata, OperatorMetadata
from ekorn.checkpoint.signing import SigningKey
from ekorn.config import options
from ekorn.errors import CheckpointError, ConfigurationError, CorruptFileError, UntrustedFileError
from ekorn.state.kinds import KINDS, bare_kind
from ekorn.state.snapshots import (
    CANONICAL,
    InFlightFiles,
    KeyedFiles,
    OperatorSnapshot,
    StateFile,
    StateInfo,
    StoredInput,
)
from ekorn.storage.locations import check_path

__all__ = ["decode_metadata", "encode_metadata", "is_signed"]

# docs/formats/metadata.md
MAGIC = "EKORN-CHECKPOINT"
_READABLE = (1, 2)  # version 1 has no blobs in flight
_LONGEST_HEADER_BYTES = 100
# The last field of a signed document. An older release ignores the field, and reads the file.
_SIGNATURE = ',\n "hmac_sha256": "{}"\n}}'
_SIGNATURE_BYTES = len(_SIGNATURE.format("0" * 64))
_BEFORE_SIGNATURE, _AFTER_SIGNATURE = _SIGNATURE.format("\0").encode("ascii").split(b"\0")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def encode_metadata(metadata: CheckpointMetadata, key: SigningKey | None = None) -> bytes:
    """Return the bytes of the `_metadata` file, signed if there is a key.

    Raises:
        CheckpointError: There is a key, but a state file has no SHA-256 that a signature could protect.
    """
    document = {
        "checkpoint_id": metadata.checkpoint_id,
        "job_id": metadata.job_id,
        "job_name": metadata.job_name,
        "timestamp_ms": metadata.timestamp_ms,
        "kind": metadata.kind,
        "term": metadata.term,
        "operators": [_encode_operator(operator) for operator in metadata.operators],
    }
    body = json.dumps(document, ensure_ascii=False, indent=1).encode("utf-8", "surrogatepass")
    if key is not None:
        unprotected = _without_sha256(metadata)
        if unprotected is not None:
            raise CheckpointError(
                f"checkpoint {metadata.checkpoint_id} cannot be signed: state file {unprotected!r} has no SHA-256"
            )
        signed = body[: -len("\n}")]
        signature = key.sign(_signed_bytes(str(metadata.format_version), signed))
        body = signed + _SIGNATURE.format(signature).encode("ascii")
    header = f"{MAGIC} {metadata.format_version} {len(body)} {zlib.crc32(body):08x}\n"
    return header.encode("ascii") + body


def _signed_bytes(version: str, document: bytes) -> bytes:
    """Return what the signature is made from: the version decides how the document is read, so it is signed too."""
    return f"{MAGIC} {version}\n".encode("ascii") + document


def _without_sha256(metadata: CheckpointMetadata) -> str | None:
    return next((file.path for file in metadata.files() if file.path is not None and file.sha256 is None), None)


def _encode_operator(operator: OperatorMetadata) -> dict[str, Any]:
    numbers: dict[StateInfo, Any] = {_without_schema(info): number for number, info in enumerate(operator.states)}
    return {
        "id": operator.operator_id,
        "uid": operator.uid,
        "name": operator.name,
        "parallelism": operator.parallelism,
        "max_parallelism": operator.max_parallelism,
        "finished": [index for index, done in enumerate(operator.finished) if done],
        "states": [_encode_info(info) for info in operator.states],
        "subtasks": [None if s is None else _encode_snapshot(s, numbers) for s in operator.subtasks],
    }


def _encode_snapshot(snapshot: OperatorSnapshot, numbers: dict[StateInfo, Any]) -> dict[str, Any]:
    keyed = snapshot.keyed
    document = {
        "keyed": None if keyed is None else _encode_keyed(keyed),
        "operator_state": None if snapshot.operator_state is None else _encode_file(snapshot.operator_state),
        # By number if the operator's list has the state; in full if subtasks disagree about it.
        "states": [
            numbers.get(_without_schema(info), [info.name, info.kind, info.type_text, info.ttl])
            for info in snapshot.states
        ],
    }
    if snapshot.in_flight is not None:
        document["in_flight"] = _encode_in_flight(snapshot.in_flight)
    return document


def _encode_in_flight(in_flight: InFlightFiles) -> dict[str, Any]:
    return {
        "size": in_flight.size_bytes,
        "inputs": [[i.source, i.input_index, i.tag, i.number] for i in in_flight.inputs],
        "files": [_encode_file(file) for file in in_flight.files],
    }


def _encode_keyed(keyed: KeyedFiles) -> dict[str, Any]:
    document: dict[str, Any] = {
        "key_groups": [keyed.key_group_first, keyed.key_group_last],
        "files": [_encode_file(file) for file in keyed.files],
    }
    if keyed.format != CANONICAL:
        document |= {"format": keyed.format, "names": list(keyed.names)}
    return document


def _encode_info(info: StateInfo) -> dict[str, Any]:
    document = {"name": info.name, "kind": info.kind, "type": info.type_text, "ttl": info.ttl}
    return document | {"schema": json.loads(info.schema)} if info.schema else document


def _without_schema(info: StateInfo) -> StateInfo:
    """Return the info as one subtask gives it. The schema is merged from all subtasks."""
    return replace(info, schema="")


def _encode_file(file: StateFile) -> dict[str, Any]:
    document: dict[str, Any] = {"size": file.size, "crc32": f"{file.crc32:08x}"}
    if file.raw_size is not None:
        document["raw_size"] = file.raw_size
    if file.sha256 is not None:
        document["sha256"] = file.sha256
    if file.path is not None:
        document["path"] = file.path
    else:
        document["inline"] = base64.b64encode(file.inline or b"").decode("ascii")
    return document


# --------------------------------------------------------------------------------------------------------- from bytes


def decode_metadata(data: bytes, where: str, key: SigningKey | None = None) -> CheckpointMetadata:
    """Return what `encode_metadata` was given; `where` names the file in an error.

    Raises:
        UntrustedFileError: There is a key, and the file is not signed with it.
        CorruptFileError: The bytes are torn, changed, foreign, of a newer format, or name files outside the directory.
    """
    body = _check_header(data, where)
    if key is not None:
        _check_signature(data, body, where, key)
    try:
        metadata = _decode_document(json.loads(body))
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        # The checksum is right, so another program wrote this document, or it is forged.
        found = f"a document that is not metadata ({type(error).__name__}: {error})"
        raise CorruptFileError(where, found, "checkpoint metadata") from error
    unprotected = _without_sha256(metadata)
    if key is not None and unprotected is not None:
        raise UntrustedFileError(where, f"state file {unprotected!r} without SHA-256", options.SIGNING_KEY_FILE.key)
    return metadata


def is_signed(data: bytes) -> bool:
    """Return whether the bytes of a `_metadata` file end with a signature, made with any key."""
    suffix = data[-_SIGNATURE_BYTES:]
    return suffix.startswith(_BEFORE_SIGNATURE) and suffix.endswith(_AFTER_SIGNATURE)


def _check_signature(data: bytes, body: bytes, where: str, key: SigningKey) -> None:
    signed, suffix = body[:-_SIGNATURE_BYTES], body[-_SIGNATURE_BYTES:]
    if not is_signed(body):
        raise UntrustedFileError(where, "no signature", options.SIGNING_KEY_FILE.key)
    version = data.split(b" ", 2)[1].decode("ascii")
    signature = suffix[len(_BEFORE_SIGNATURE) : -len(_AFTER_SIGNATURE)].decode("ascii", "replace")
    if not key.matches(_signed_bytes(version, signed), signature):
        raise UntrustedFileError(where, "a signature of another key or of other bytes", options.SIGNING_KEY_FILE.key)


def _check_header(data: bytes, where: str) -> bytes:
    line, newline, body = data[:_LONGEST_HEADER_BYTES].partition(b"\n")
    words = line.split(b" ")
    if words[0] != MAGIC.encode("ascii") or not newline or len(words) != 4:
        raise CorruptFileError(where, f"a file that starts with {data[:24]!r}", f"checkpoint metadata ({MAGIC})")
    body = data[len(line) + 1 :]
    # Fields are compared as the text that ekorn writes, so that "007", "+7" or upper case are refused.
    if words[1] not in [str(version).encode("ascii") for version in _READABLE]:
        found = f"metadata format version {words[1].decode('ascii', 'replace')}"
        expected = f"version {FORMAT_VERSION}, the newest this release of ekorn reads; use the release that wrote it"
        raise CorruptFileError(where, found, expected)
    if words[2] != str(len(body)).encode("ascii"):
        expected = f"{words[2].decode('ascii', 'replace')} bytes of metadata"
        raise CorruptFileError(where, f"{len(body)} bytes", expected)
    crc32 = f"{zlib.crc32(body):08x}"
    if words[3] != crc32.encode("ascii"):
        raise CorruptFileError(where, f"crc32 {crc32}", f"crc32 {words[3].decode('ascii', 'replace')}")
    return body


def _decode_document(document: dict[str, Any]) -> CheckpointMetadata:
    kind = document["kind"]
    if kind not in ("checkpoint", "savepoint"):
        raise ValueError(f"kind {kind!r}")
    operators = tuple(_decode_operator(operator) for operator in document["operators"])
    if len({operator.operator_id for operator in operators}) != len(operators):
        raise ValueError("an operator id twice")
    return CheckpointMetadata(
        checkpoint_id=_number(document["checkpoint_id"], at_least=0),
        job_id=_text(document["job_id"]),
        job_name=_text(document["job_name"]),
        timestamp_ms=_number(document["timestamp_ms"]),
        operators=operators,
        kind=kind,
        term=_number(document["term"], at_least=0),
    )


def _decode_operator(document: dict[str, Any]) -> OperatorMetadata:
    operator_id, name = _text(document["id"]), _text(document["name"])
    uid = None if document["uid"] is None else _text(document["uid"])
    parallelism = _number(document["parallelism"], at_least=1)
    max_parallelism = _number(document["max_parallelism"], at_least=parallelism)
    states = tuple(_decode_info(s["name"], s["kind"], s["type"], s["ttl"], s.get("schema")) for s in document["states"])
    if len(document["subtasks"]) != parallelism:
        raise ValueError(f"{len(document['subtasks'])} subtasks of {name!r}, but parallelism {parallelism}")
    finished = {_number(index, at_least=0) for index in document["finished"]}
    if finished and max(finished) >= parallelism:
        raise ValueError(f"subtask {max(finished)} of {name!r} finished, but parallelism {parallelism}")

    def snapshot(part: dict[str, Any] | None) -> OperatorSnapshot | None:
        if part is None:
            return None
        return OperatorSnapshot(
            operator_id=operator_id,
            uid=uid,
            name=name,
            keyed=None if part["keyed"] is None else _decode_keyed(part["keyed"], max_parallelism),
            operator_state=None if part["operator_state"] is None else _decode_file(part["operator_state"]),
            states=tuple(
                _decode_info(*s) if isinstance(s, list) else states[_number(s, at_least=0)] for s in part["states"]
            ),
            in_flight=_decode_in_flight(part["in_flight"]) if "in_flight" in part else None,
        )

    return OperatorMetadata(
        operator_id=operator_id,
        uid=uid,
        name=name,
        parallelism=parallelism,
        max_parallelism=max_parallelism,
        subtasks=tuple(snapshot(part) for part in document["subtasks"]),
        finished=tuple(index in finished for index in range(parallelism)),
        states=states,
    )


def _decode_info(name: Any, kind: Any, type_text: Any, ttl: Any, schema: Any = None) -> StateInfo:
    if not isinstance(ttl, bool):
        raise TypeError(f"ttl {ttl!r}")
    if ttl and bare_kind(_text(kind)) not in KINDS:
        raise ValueError(f"a state of kind {kind!r} with a time to live")
    if schema is not None and not isinstance(schema, dict):
        raise TypeError(f"schema {schema!r}")
    text = "" if schema is None else json.dumps(schema)
    return StateInfo(name=_text(name), kind=_text(kind), type_text=_text(type_text), ttl=ttl, schema=text)


def _decode_in_flight(document: dict[str, Any]) -> InFlightFiles:
    return InFlightFiles(
        inputs=tuple(_decode_input(*stored) for stored in document["inputs"]),
        files=tuple(_decode_file(file) for file in document["files"]),
        size_bytes=_number(document["size"], at_least=0),
    )


def _decode_input(source: Any, input_index: Any, tag: Any, number: Any) -> StoredInput:
    return StoredInput(
        _text(source),
        _number(input_index, at_least=0),
        None if tag is None else _text(tag),
        _number(number, at_least=0),
    )


def _decode_keyed(document: dict[str, Any], max_parallelism: int) -> KeyedFiles:
    first, last = (_number(bound, at_least=0) for bound in document["key_groups"])
    if not first <= last < max_parallelism:
        raise ValueError(f"key groups {first} to {last} of {max_parallelism}")
    files = tuple(_decode_file(file) for file in document["files"])
    names = tuple(_text(name) for name in document.get("names", ()))
    if names and len(names) != len(files):
        raise ValueError(f"{len(names)} names for {len(files)} files")
    return KeyedFiles(first, last, files, format=_text(document.get("format", CANONICAL)), names=names)


def _decode_file(document: dict[str, Any]) -> StateFile:
    size = _number(document["size"], at_least=0)
    crc32 = int(_text(document["crc32"]), 16)
    raw_size = _number(document["raw_size"], at_least=0) if "raw_size" in document else None
    sha256 = _text(document["sha256"]) if "sha256" in document else None
    if sha256 is not None and not _SHA256.fullmatch(sha256):
        raise ValueError(f"SHA-256 {sha256!r}")
    if ("path" in document) == ("inline" in document):
        raise ValueError("a state file with both or neither of path and inline bytes")
    if "path" in document:
        path = _text(document["path"])
        try:
            check_path(path)
        except ConfigurationError as error:
            raise ValueError(str(error)) from error
        return StateFile(size=size, crc32=crc32, path=path, raw_size=raw_size, sha256=sha256)
    inline = base64.b64decode(_text(document["inline"]), validate=True)
    if len(inline) != size or zlib.crc32(inline) != crc32:
        raise ValueError("inline state that does not match its size and crc32")
    return StateFile(size=size, crc32=crc32, inline=inline, raw_size=raw_size)


def _number(value: Any, *, at_least: int | None = None) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or (at_least is not None and value < at_least):
        raise ValueError(f"{value!r} where a number was expected")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} where text was expected")
    return value
