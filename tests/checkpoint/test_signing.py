"""Signed metadata: only the key that signed it accepts it, and releases without keys still read it."""

import os
import pickle
import zlib
from dataclasses import replace

import pytest

from ekorn.checkpoint.describe import describe
from ekorn.checkpoint.metadata_file import decode_metadata, encode_metadata
from ekorn.checkpoint.savepoint_files import dispose_savepoint, find_checkpoints, new_savepoint
from ekorn.checkpoint.signing import SigningKey, read_signing_key
from ekorn.cli.main import main
from ekorn.errors import CheckpointError, ConfigurationError, CorruptFileError, UntrustedFileError
from ekorn.state.snapshots import StateFile
from ekorn.state.state_files import read_state, write_state
from ekorn.storage.memory import MemoryFiles
from tests.checkpoint.checkpoint_values import all_files, graph, metadata, opened, vertex

KEY, OTHER = SigningKey(b"k" * 32), SigningKey(b"o" * 32)
JOB_GRAPH = graph(vertex(0, "job", source=True))


def inline_metadata(checkpoint_id=7):
    """Return metadata whose state is inside the metadata itself."""
    return metadata(JOB_GRAPH, MemoryFiles(), checkpoint_id, inline_threshold=1000)


def with_header(body, version=1):
    return f"EKORN-CHECKPOINT {version} {len(body)} {zlib.crc32(body):08x}\n".encode() + body


def body_of(data):
    return data.partition(b"\n")[2]


def test_signed_metadata_is_read_with_its_key_and_without_any():
    value = inline_metadata()
    signed = encode_metadata(value, KEY)
    assert decode_metadata(signed, "here", KEY) == value
    assert decode_metadata(signed, "here") == value


def test_without_a_key_the_bytes_stay_as_they_were():
    assert b"hmac" not in encode_metadata(inline_metadata()) and b"sha256" not in encode_metadata(inline_metadata())


def test_unsigned_metadata_and_that_of_another_key_are_refused_by_name_of_file_and_option():
    for data in (encode_metadata(inline_metadata()), encode_metadata(inline_metadata(), OTHER)):
        with pytest.raises(UntrustedFileError, match=r"s3://b/chk-7/_metadata.*ekorn\.checkpoint\.signing-key-file"):
            decode_metadata(data, "s3://b/chk-7/_metadata", KEY)


def test_no_byte_of_signed_metadata_can_be_changed():
    body = body_of(encode_metadata(inline_metadata(), KEY))
    for position in range(len(body)):
        forged = bytearray(body)
        forged[position] ^= 1
        with pytest.raises(CorruptFileError):
            decode_metadata(with_header(bytes(forged)), "here", KEY)


def test_the_version_is_signed_and_nothing_can_follow_the_signature():
    body = body_of(encode_metadata(inline_metadata(), KEY))
    for forged in (with_header(body, version=2), with_header(body + b"\n"), with_header(body[:-1] + b' , "a": 1}')):
        with pytest.raises(UntrustedFileError):
            decode_metadata(forged, "here", KEY)


def test_metadata_whose_state_files_have_no_sha256_is_not_signed():
    with pytest.raises(CheckpointError, match="has no SHA-256"):
        encode_metadata(metadata(JOB_GRAPH, MemoryFiles(), 7), KEY)


def test_signed_metadata_with_a_state_file_without_sha256_is_refused():
    """The signature is right, as by a program that has the key and does not hash: the file could be exchanged."""
    value = metadata(JOB_GRAPH, MemoryFiles(), 7)
    assert any(file.path is not None and file.sha256 is None for file in value.files())
    document = body_of(encode_metadata(value)).removesuffix(b"\n}")
    signature = KEY.sign(f"EKORN-CHECKPOINT {value.format_version}\n".encode() + document)
    signed = with_header(document + f',\n "hmac_sha256": "{signature}"\n}}'.encode(), value.format_version)
    assert decode_metadata(signed, "here") == value, "without a key it is metadata like any other"
    with pytest.raises(UntrustedFileError, match=r"here.*state file '.*' without SHA-256"):
        decode_metadata(signed, "here", KEY)
    store = MemoryFiles()
    directory = opened(store)
    directory.start_from(None)
    directory.complete(value)
    (path,) = [each for each in all_files(store) if each.endswith("/_metadata")]
    store.replace(path, signed)
    directory.signing_key = KEY
    with pytest.raises(UntrustedFileError, match="without SHA-256"):
        directory.load(7)


def test_a_state_file_with_another_sha256_is_refused_though_size_and_crc32_are_right():
    store = MemoryFiles()
    written = write_state(store, "f", b"genuine", 0, hashed=True)
    assert read_state(store, written) == b"genuine"
    with pytest.raises(CorruptFileError, match="SHA-256"):
        read_state(store, replace(written, sha256="0" * 64))


def test_a_job_refuses_what_it_did_not_sign_in_its_own_directory():
    store = MemoryFiles()
    directory = opened(store)
    directory.start_from(None)
    directory.complete(inline_metadata(1))
    directory.signing_key = KEY
    with pytest.raises(UntrustedFileError):
        directory.load(1)
    directory.complete(inline_metadata(2))
    assert directory.load(2).checkpoint_id == 2


@pytest.fixture
def savepoint(tmp_path):
    place = new_savepoint(str(tmp_path), "0" * 32)
    place.publish(replace(inline_metadata(), kind="savepoint"), OTHER)
    return tmp_path / place.name


def test_a_savepoint_of_another_key_is_not_described_and_not_disposed_of(savepoint):
    for refused in (describe, dispose_savepoint):
        with pytest.raises(UntrustedFileError):
            refused(str(savepoint), KEY)
    (found,) = find_checkpoints(str(savepoint.parent), key=KEY)
    assert found.metadata is None and "signing-key-file" in found.why
    assert "savepoint 7" in describe(str(savepoint), OTHER)


def test_the_commands_refuse_what_the_configured_key_did_not_sign(savepoint, tmp_path, monkeypatch, capsys):
    key = key_file(tmp_path / "key", b"k" * 32)
    (tmp_path / "config.yaml").write_text(f"ekorn.checkpoint.signing-key-file: {key}\n")
    assert main(["savepoint", "show", str(savepoint)]) == 0
    monkeypatch.setenv("EKORN_CONF_DIR", str(tmp_path))
    for command in ("show", "dispose"):
        assert main(["savepoint", command, str(savepoint)]) != 0
        assert "ekorn.checkpoint.signing-key-file" in capsys.readouterr().err
    assert (savepoint / "_metadata").exists()
    key_file(tmp_path / "key", b"o" * 32)
    assert main(["savepoint", "show", str(savepoint)]) == 0


# ------------------------------------------------------------------------------------------------------- the key file


def key_file(path, content, mode=0o600):
    path.write_bytes(content)
    path.chmod(mode)
    return str(path)


def test_a_key_is_read_from_a_private_file(tmp_path):
    key = read_signing_key(key_file(tmp_path / "key", b"k" * 32))
    assert key is not None and key.matches(b"data", KEY.sign(b"data"))
    assert read_signing_key(None) is None


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610])
def test_a_key_file_that_is_open_to_others_is_refused(tmp_path, mode):
    with pytest.raises(ConfigurationError, match=f"signing-key-file.*{mode:04o}.*chmod 600"):
        read_signing_key(key_file(tmp_path / "key", b"k" * 32, mode))


def test_a_short_missing_or_special_key_file_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="31 bytes"):
        read_signing_key(key_file(tmp_path / "short", b"k" * 31))
    with pytest.raises(ConfigurationError, match="No such file"):
        read_signing_key(str(tmp_path / "missing"))
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(ConfigurationError, match="not a regular file"):
        read_signing_key(str(tmp_path / "pipe"))


def test_a_key_is_never_pickled_or_shown():
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(KEY)
    assert "kkkk" not in repr(KEY)


def test_the_digest_of_a_state_file_has_one_form():
    value = metadata(JOB_GRAPH, MemoryFiles(), 7)
    bad = StateFile(size=1, crc32=1, path="shared/x", sha256="A" * 64)
    operator = value.operators[0]
    snapshot = operator.subtasks[0]
    changed = replace(operator, subtasks=(replace(snapshot, operator_state=bad),))
    with pytest.raises(CorruptFileError, match="SHA-256"):
        decode_metadata(encode_metadata(replace(value, operators=(changed,))), "here")
