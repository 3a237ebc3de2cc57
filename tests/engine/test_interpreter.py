"""Archives of a job: unpacked into their folder, and refused when an entry leads out of it."""

import io
import stat
import tarfile
import zipfile

import pytest

from ekorn.config.settings.deployment_settings import PythonArchive, PythonDependencies
from ekorn.engine.slots.interpreter import prepare_interpreter
from ekorn.engine.slots.local_pool import LocalSlotPool
from ekorn.errors import DeploymentError


def unpack(path, tmp_path):
    folder = tmp_path / "job" / "inner"
    prepare_interpreter(PythonDependencies(archives=(PythonArchive(str(path), "data"),)), str(folder))
    return folder / "archives" / "data"


def tar_with(path, name, link=None):
    with tarfile.open(path, "w:gz") as archive:
        entry = tarfile.TarInfo(name)
        if link is not None:
            entry.type, entry.linkname = tarfile.SYMTYPE, link
        archive.addfile(entry, io.BytesIO(b""))
    return path


def zip_with(path, name, mode=stat.S_IFREG | 0o644):
    with zipfile.ZipFile(path, "w") as archive:
        entry = zipfile.ZipInfo(name)
        entry.external_attr = mode << 16
        archive.writestr(entry, "/etc/passwd")
    return path


@pytest.mark.parametrize(("name", "link"), [("../../../out", None), ("link", "/etc"), ("link", "../../../..")])
def test_a_tar_archive_that_leads_out_of_its_folder_is_refused(tmp_path, name, link):
    with pytest.raises(DeploymentError, match="cannot be unpacked"):
        unpack(tar_with(tmp_path / "a.tar.gz", name, link), tmp_path)
    assert list(tmp_path.rglob("out")) == list(tmp_path.rglob("link")) == []


@pytest.mark.parametrize(
    ("name", "mode", "said"),
    [
        ("../../../out", stat.S_IFREG | 0o644, "is outside the folder"),
        ("/out", stat.S_IFREG | 0o644, "is outside the folder"),
        ("link", stat.S_IFLNK | 0o777, "is a link"),
    ],
)
def test_a_zip_archive_that_leads_out_of_its_folder_is_refused(tmp_path, name, mode, said):
    with pytest.raises(DeploymentError, match=f"cannot be unpacked: .*{said}"):
        unpack(zip_with(tmp_path / "a.zip", name, mode), tmp_path)
    assert list(tmp_path.rglob("out")) == list(tmp_path.rglob("link")) == []


def test_other_archives_are_unpacked(tmp_path):
    assert (unpack(zip_with(tmp_path / "a.zip", "inner/file"), tmp_path) / "inner" / "file").exists()
    assert (unpack(tar_with(tmp_path / "a.tar.gz", "inner/other"), tmp_path) / "inner" / "other").exists()


def test_a_requirement_does_not_replace_what_a_slot_itself_imports(tmp_path):
    (tmp_path / "cloudpickle.py").write_text("raise ImportError('the cloudpickle of the requirements')\n")
    pool = LocalSlotPool(1, PythonDependencies(files=(str(tmp_path),)))
    try:
        assert pool.ensure() == [0]  # the slot has imported what it needs, and answers
    finally:
        pool.shutdown()


def test_the_installer_of_requirements_has_the_umask_of_every_process_of_a_job(tmp_path):
    installer, umask = tmp_path / "python", tmp_path / "umask"
    installer.write_text(f"#!/bin/sh\numask > '{umask}'\n")
    installer.chmod(0o700)
    wanted = PythonDependencies(executable=str(installer), requirements_file=str(tmp_path / "requirements.txt"))
    prepare_interpreter(wanted, str(tmp_path / "job"))
    assert int(umask.read_text(), 8) == 0o077
