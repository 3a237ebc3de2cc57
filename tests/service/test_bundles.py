"""Programs as they travel to the service: what is packed, and what is not unpacked."""

import os
import stat
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from ekorn.errors import ConfigurationError
from ekorn.service.jobs.bundles import digest_of, make_bundle, unpack
from ekorn.service.jobs.job_store import JobStore


def write(folder, **files):
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_py", ".py")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def test_a_script_is_packed_with_the_modules_beside_it_that_it_imports(tmp_path):
    write(
        tmp_path,
        main_py="import json, near\nfrom pack.deep import thing\n",
        near_py="import further",
        further_py="",
        apart_py="",
        pack__init_py="",
        pack__deep_py="thing = 1",
        pack__data="x",
    )
    (tmp_path / "pack" / "init.py").rename(tmp_path / "pack" / "__init__.py")
    bundle = make_bundle(str(tmp_path / "main.py"))
    assert bundle.names == ("further.py", "main.py", "near.py", "pack/__init__.py", "pack/data", "pack/deep.py")
    assert make_bundle(str(tmp_path / "main.py")).digest == bundle.digest
    assert "apart.py" in make_bundle(str(tmp_path / "main.py"), [str(tmp_path / "apart.py")]).names
    archive = tmp_path / "main.zip"
    archive.write_bytes(bundle.data)
    unpack(archive, tmp_path / "unpacked", 10_000)
    assert (tmp_path / "unpacked" / "pack" / "deep.py").read_text() == "thing = 1"


@pytest.mark.parametrize("name", ["../outside", "/etc/outside", "a/../../outside", "a\\..\\outside"])
def test_names_that_lead_elsewhere_are_refused(tmp_path, name):
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        archive.writestr(name, "x")
    with pytest.raises(ConfigurationError, match="not a file below its folder"):
        unpack(tmp_path / "bad.zip", tmp_path / "unpacked", 10_000)
    assert not (tmp_path / "outside").exists()


def test_a_program_that_was_damaged_on_its_way_is_refused(tmp_path):
    store, file = JobStore(str(tmp_path / "service")), tmp_path / "main.zip"
    file.write_bytes(b"some bytes")
    with pytest.raises(ConfigurationError, match="damaged in transit"):
        store.add_program(file, "0" * 64, "main.py")
    assert store.programs() == []
    program = store.add_program(file, digest_of(file), "main.py")
    found = store.program(program)
    assert found is not None
    found.write_bytes(b"other bytes")
    with pytest.raises(ConfigurationError, match="damaged on the disk"):
        store.unpack_into(program, "main.py", tmp_path / "unpacked", 100)


def test_links_are_refused(tmp_path):
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(ConfigurationError, match="not a file below its folder"):
        unpack(tmp_path / "bad.zip", tmp_path / "unpacked", 10_000)


def test_what_is_too_large_or_damaged_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "large.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", "0" * 100_000)
    with pytest.raises(ConfigurationError, match="larger than 10000 bytes"):
        unpack(tmp_path / "large.zip", tmp_path / "unpacked", 10_000)
    (tmp_path / "torn.zip").write_bytes((tmp_path / "large.zip").read_bytes()[:-30])
    with pytest.raises(ConfigurationError, match="not an archive"):
        unpack(tmp_path / "torn.zip", tmp_path / "unpacked", 1 << 20)


def test_clients_that_bring_the_same_program_at_once_all_succeed(tmp_path):
    store, file = JobStore(str(tmp_path / "service")), tmp_path / "main.zip"
    file.write_bytes(b"x" * (4 << 20))
    digest = digest_of(file)
    with ThreadPoolExecutor(8) as clients:
        added = {each.result() for each in [clients.submit(store.add_program, file, digest, "a.py") for _ in range(64)]}
    assert [each.id for each in store.programs()] == sorted(added)
    assert digest_of(tmp_path / "service" / "programs" / store.programs()[0].id) == digest
    assert len(os.listdir(tmp_path / "service" / "programs")) == 1
