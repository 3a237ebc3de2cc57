"""`ekorn savepoint sign` and `verify`: a savepoint taken without a key is signed, and jobs with the key restore it."""

import contextlib
import json
import shutil

import pytest

from ekorn.cli.main import main
from ekorn.common import WatermarkStrategy
from ekorn.errors import JobCancelledError, UntrustedFileError
from ekorn.testing.scripted import Script, ScriptedSource, run_scripted
from tests.live_jobs import environment, expected_tally, tallied
from tests.reliability.forged_savepoints import first_file, hostile_keys, replace_state, rewrite

KEYS, RECORDS = 5, 40


def job(backend, key=None, directory=None, inline=0):
    keys = {"state__backend__type": backend, "execution__checkpointing__data_inline_threshold": inline}
    if key is not None:
        keys["ekorn__checkpoint__signing_key_file"] = key
    source = ScriptedSource([list(range(RECORDS))], [4])
    env = environment(directory, **keys)
    return tallied(env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers"), KEYS)


@pytest.fixture(scope="module", params=["hashmap", "rocksdb", "inline"])
def unsigned(request, tmp_path_factory):
    """Return a backend's name, and a folder with a savepoint and a retained checkpoint, taken without a key."""
    backend, inline = ("hashmap", 10_000) if request.param == "inline" else (request.param, 0)
    folder, asked = tmp_path_factory.mktemp("unsigned"), []
    deed = {4: lambda handle: asked.append(handle.request_savepoint(str(folder), native=True, then="cancel"))}
    with contextlib.suppress(JobCancelledError):
        run_scripted(job(backend, None, folder / "checkpoints", inline), Script(deeds=deed))
    shutil.move(asked[0].result(0), folder / "savepoint")
    return backend, folder


@pytest.fixture
def copy(unsigned, tmp_path):
    shutil.copytree(unsigned[1], tmp_path / "copy")
    return unsigned[0], tmp_path / "copy"


@pytest.fixture(autouse=True)
def no_configuration(monkeypatch):
    monkeypatch.delenv("EKORN_CONF_DIR", raising=False)


@pytest.fixture
def key(tmp_path):
    return write_key(tmp_path / "key", b"k" * 32)


def write_key(path, secret, mode=0o600):
    path.write_bytes(secret)
    path.chmod(mode)
    return path


def command(*arguments):
    return main(["savepoint", *(str(argument) for argument in arguments)])


def restored(backend, key, path):
    return run_scripted(job(backend, key), restore_path=str(path)).records


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_savepoint_is_signed_verified_and_restored_by_a_job_with_the_key(copy, key, capsys):
    backend, folder = copy
    savepoint = folder / "savepoint"
    with pytest.raises(UntrustedFileError, match="ekorn savepoint sign"):
        restored(backend, key, savepoint)
    assert command("verify", savepoint, "--key-file", key) == 1
    assert "no signature" in capsys.readouterr().err
    assert command("sign", savepoint, "--key-file", key) == 0
    assert capsys.readouterr().out.startswith("signed savepoint ")
    assert command("verify", savepoint, "--key-file", key) == 0
    assert "signed with this key" in capsys.readouterr().out
    records = restored(backend, key, savepoint)
    assert records == expected_tally(RECORDS, KEYS)[-len(records) :] and 0 < len(records) < RECORDS
    assert restored(backend, None, savepoint) == records, "a job without a key reads it as before"


def test_a_retained_checkpoint_is_signed_too(copy, key, capsys):
    backend, folder = copy
    checkpoint = max((folder / "checkpoints").glob("*/chk-*/_metadata")).parent
    assert command("sign", checkpoint, "--key-file", key) == 0
    assert command("verify", checkpoint, "--key-file", key) == 0
    assert restored(backend, key, checkpoint)


def test_a_checkpoint_of_a_job_that_runs_is_not_signed(key, capsys, tmp_path):
    """The job may delete the checkpoint meanwhile, and the metadata would come back without its files."""
    refused = []

    def sign(handle):
        refused.append(command("sign", handle.progress().last_checkpoint_path, "--key-file", key))

    run_scripted(job("hashmap", None, tmp_path / "checkpoints"), Script(deeds={6: sign}))
    assert refused == [1] and "belongs to a job that is running" in capsys.readouterr().err


def test_signing_again_changes_nothing(copy, key, capsys):
    _, folder = copy
    assert command("sign", folder / "savepoint", "--key-file", key) == 0
    before = contents(folder)
    assert command("sign", folder / "savepoint", "--key-file", key) == 0
    assert contents(folder) == before


def test_the_key_of_the_configuration_is_used_and_without_any_the_command_says_so(
    copy, key, capsys, tmp_path, monkeypatch
):
    _, folder = copy
    before = contents(folder)
    for verb in ("sign", "verify"):
        assert command(verb, folder / "savepoint") == 1
        said = capsys.readouterr().err
        assert "--key-file" in said and "ekorn.checkpoint.signing-key-file" in said
    assert contents(folder) == before
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "config.yaml").write_text(f"ekorn.checkpoint.signing-key-file: {key}\n")
    monkeypatch.setenv("EKORN_CONF_DIR", str(tmp_path / "conf"))
    assert command("sign", folder / "savepoint") == 0
    assert command("verify", folder / "savepoint") == 0


@pytest.mark.parametrize("verb", ["sign", "verify"])
def test_another_key_is_refused_and_does_not_sign_over(copy, key, capsys, tmp_path, verb):
    _, folder = copy
    assert command("sign", folder / "savepoint", "--key-file", key) == 0
    before = contents(folder)
    other = write_key(tmp_path / "other", b"o" * 32)
    assert command(verb, folder / "savepoint", "--key-file", other) == 1
    assert "a signature of another key" in capsys.readouterr().err
    assert contents(folder) == before


@pytest.mark.parametrize("wrong", ["missing", "open to others", "short"])
def test_a_key_file_that_cannot_be_used_is_refused(copy, capsys, tmp_path, wrong):
    _, folder = copy
    path = tmp_path / "given"
    if wrong != "missing":
        write_key(path, b"k" * (31 if wrong == "short" else 32), 0o644 if wrong == "open to others" else 0o600)
    before = contents(folder)
    assert command("sign", folder / "savepoint", "--key-file", path) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"ConfigurationError: --key-file: {str(path)!r}")
    assert contents(folder) == before


def test_a_damaged_savepoint_is_not_signed(copy, key, capsys):
    _, folder = copy
    savepoint = folder / "savepoint"
    victims = [path for path in sorted(savepoint.iterdir()) if path.name != "_metadata"]
    if not victims:
        victims = [savepoint / "_metadata"]
    for victim in victims:
        good = victim.read_bytes()
        victim.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
        before = contents(savepoint)
        assert command("sign", savepoint, "--key-file", key) == 1
        assert victim.name in capsys.readouterr().err
        assert contents(savepoint) == before
        victim.write_bytes(good)


def test_a_file_that_was_exchanged_after_signing_is_found(copy, key, capsys, tmp_path):
    backend, folder = copy
    savepoint, mark = folder / "savepoint", tmp_path / "mark"
    assert command("sign", savepoint, "--key-file", key) == 0
    document = json.loads((savepoint / "_metadata").read_bytes().partition(b"\n")[2])
    if "path" not in first_file(document):
        rewrite(savepoint, lambda d: first_file(d).update(size=first_file(d)["size"]))
    else:
        described = replace_state(savepoint / first_file(document)["path"], hostile_keys(mark))
        assert command("verify", savepoint, "--key-file", key) == 1
        capsys.readouterr()
        rewrite(savepoint, lambda d: first_file(d).update(described))
    assert command("verify", savepoint, "--key-file", key) == 1
    assert "signature" in capsys.readouterr().err
    with pytest.raises(UntrustedFileError):
        restored(backend, key, savepoint)
    assert not mark.exists()


def test_what_is_no_savepoint_is_said_so(tmp_path, key, capsys):
    for verb in ("sign", "verify"):
        assert command(verb, tmp_path, "--key-file", key) == 1
        assert "no checkpoint at" in capsys.readouterr().err


def test_help_names_the_key_file(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    for verb in ("sign", "verify"):
        with pytest.raises(SystemExit):
            command(verb, "--help")
        said = " ".join(capsys.readouterr().out.split())
        assert "--key-file FILE" in said and "ekorn.checkpoint.signing-key-file" in said
