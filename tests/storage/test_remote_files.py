"""Remote stores: which library opens which address, whole objects, retries, and hidden secrets."""

import errno
import logging
import random
import sys
import traceback

import botocore.exceptions
import pytest
from fsspec.implementations.local import LocalFileSystem

from ekorn.errors import ConfigurationError
from ekorn.storage.arrow_access import ArrowAccess, open_arrow
from ekorn.storage.file_store import open_files
from ekorn.storage.fsspec_access import FsspecAccess
from ekorn.storage.locations import join, masked, secrets_of, shown, split_last
from ekorn.storage.remote import RemoteFiles
from ekorn.storage.retry import Patience, is_final
from tests.object_store import FakeObjects
from tests.s3_server import ACCESS_KEY

# ------------------------------------------------------------------------------------------------------------ opening


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("nosuch://bucket/dir", "neither pyarrow nor fsspec knows it"),
        ("s3:///dir", "Missing bucket"),
        ("s3://bucket/dir?nonsense=1&region=x", "Unexpected query parameter"),
        ("s3://bucket/../other?region=x", "no '..'"),
        ("s3://?region=x", "does not name a bucket"),
        ("s3:/bucket/dir", "write s3://"),
        ("hdfs://namenode:8020/dir", "cannot open 'hdfs://namenode:8020/dir'"),
        ("", "no directory is given"),
    ],
)
def test_an_address_that_cannot_be_opened_says_why(address, words):
    with pytest.raises(ConfigurationError) as raised:
        open_files(address)
    assert words in str(raised.value)


def test_a_package_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(ConfigurationError, match=r'pip install "ekorn\[fsspec\]"'):
        open_files("sftp://host/dir")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ConfigurationError, match=r'of .s3://bucket/dir. needs.*pip install "ekorn\[pyarrow\]"'):
        open_files("s3://bucket/dir")


def test_a_package_that_a_scheme_needs_is_named():
    with pytest.raises(
        ConfigurationError, match=r"the package that opens 'oci://bucket/dir' is not installed: .*ocifs"
    ):
        open_files("oci://bucket/dir")


def test_a_store_opens_again_from_its_address(s3_url):
    store = open_files(s3_url("dir")).below("job/chk-1")
    store.write("a", b"x")
    assert open_files(store.address).read("a") == b"x"
    above, name = split_last(store.address)
    assert name == "chk-1"
    assert open_files(above).read("chk-1/a") == b"x"


# ------------------------------------------------------------------------------------------------------------- secrets


def test_what_is_shown_has_no_credentials_and_no_options(s3_url):
    store = open_files(s3_url("dir"))
    for text in (store.url, repr(store), store.below("job").url):
        assert ACCESS_KEY not in text and "canary" not in text and "endpoint" not in text
    assert store.below("job").url.endswith("/dir/job")


@pytest.mark.parametrize("bucket", ["checkpoints", "missing"])
def test_errors_have_no_credentials_in_them(s3_url, bucket, caplog):
    caplog.set_level(logging.DEBUG)
    store = open_files(s3_url("dir", bucket=bucket))
    errors = []
    for call in (store.read, store.size):
        with pytest.raises(OSError) as raised:
            call("nothing")
        errors.append(raised.value)
    if bucket == "missing":
        with pytest.raises(OSError, match="NO_SUCH_BUCKET") as raised:
            store.write("a", b"x")
        errors.append(raised.value)
    said = caplog.text + "".join(line for error in errors for line in traceback.format_exception(error))
    assert ACCESS_KEY not in said
    assert "canary" not in said


def test_a_library_that_repeats_the_secret_is_not_quoted():
    class Careless:
        whole_puts = True
        is_final = staticmethod(is_final)

        def get(self, path):
            raise RuntimeError("403 for user:pass7word and pass7word at sftp://user:pass7word@host")

    store = RemoteFiles(Careless(), "dir", "sftp://user:pass7word@host/dir", patience=Patience(tries=1))  # type: ignore[arg-type]
    with pytest.raises(OSError) as raised:
        store.read("a")
    assert "pass7word" not in str(raised.value)
    assert str(raised.value).count("***") == 3
    assert "sftp://user@host/dir/a" in str(raised.value)


def test_a_url_that_is_refused_is_shown_without_its_secrets():
    with pytest.raises(ConfigurationError) as raised:
        open_files("s3://AKIAKEY:topsecret7@bucket/dir?nonsense=classified9")
    assert "topsecret7" not in str(raised.value)
    assert "classified9" not in str(raised.value)
    assert raised.value.__suppress_context__


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("/var/lib/x", "/var/lib/x"),
        ("s3://key:secret@bucket/dir/", "s3://bucket/dir"),
        ("s3a://bucket/dir?access_key=k&secret_key=s", "s3a://bucket/dir"),
        ("abfss://container:key@account.dfs.core.windows.net/d", "abfss://container@account.dfs.core.windows.net/d"),
        ("hdfs://me@namenode:8020/d", "hdfs://me@namenode:8020/d"),
        ("gs://bucket/dir", "gs://bucket/dir"),
    ],
)
def test_shown_addresses(address, public):
    assert shown(address) == public


def test_addresses_are_put_together_before_their_options():
    assert join("s3://bucket/dir?a=1/2", "x/y") == "s3://bucket/dir/x/y?a=1/2"
    assert split_last("s3://bucket/dir/x/?a=1/2") == ("s3://bucket/dir?a=1/2", "x")
    assert join("/a", "b") == "/a/b"
    assert join("sftp:///a", "b") == "sftp:///a/b"
    assert split_last("sftp:///a/b") == ("sftp:///a", "b")


def test_encoded_secrets_are_masked_as_they_are_and_as_they_were():
    secrets = secrets_of("s3://KEY7:a%2Fb%2Bc@bucket/dir")
    assert masked("KEY7 a%2Fb%2Bc a/b+c", secrets) == "*** *** ***"


# ------------------------------------------------------------------------------------------------------- second tries


class Flaky:
    """Objects behind a connection that fails at random: before the effect, or after it with the answer lost."""

    whole_puts = True

    def __init__(self, objects, rate, chance):
        self._objects, self._rate, self._chance = objects, rate, chance
        self.failures = 0

    def is_final(self, error):
        return is_final(error)

    def __getattr__(self, name):
        inner = getattr(self._objects, name)

        def call(*args):
            failing = self._chance.random() < self._rate
            if failing and self._chance.random() < 0.5:
                self.failures += 1
                raise OSError("connection reset")
            result = inner(*args)
            if failing:
                self.failures += 1
                raise OSError("503 slow down")
            return result

        return call


def patient(pauses):
    return Patience(sleep=pauses.append, chance=random.Random(1))


@pytest.mark.parametrize("rate", [0.1, 0.2])
def test_one_call_in_ten_may_fail_and_nobody_notices(rate):
    pauses = []
    flaky = Flaky(FakeObjects(), rate, random.Random(7))
    store = RemoteFiles(flaky, "dir", "fake://dir", patience=patient(pauses))
    for n in range(300):
        store.publish(f"chk-{n}/_metadata", b"%d" % n)
        store.replace("alive", b"%d" % n)
        assert store.read(f"chk-{n}/_metadata") == b"%d" % n
        if n > 2:
            store.delete(f"chk-{n - 2}/_metadata")
            store.delete_tree(f"chk-{n - 2}")
    assert store.list() == ["alive", "chk-0", "chk-298", "chk-299"]
    assert flaky.failures > 100
    assert len(pauses) == flaky.failures


def test_pauses_grow_and_end():
    pauses = []

    def fail():
        raise OSError("503")

    with pytest.raises(OSError, match="503"):
        patient(pauses).call(fail)
    assert len(pauses) == 5
    assert all(0.05 * 2**n <= pause <= 0.15 * 2**n for n, pause in enumerate(pauses))


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError("a"),
        FileExistsError("a"),
        PermissionError("a"),
        OSError(errno.ENOSPC, "full"),
        OSError(errno.EROFS, "read-only"),
        ConfigurationError("a"),
    ],
)
def test_what_will_not_change_is_not_tried_again(error):
    assert tries_of(error, is_final) == 1
    assert is_final(error)
    for access in (ArrowAccess(None, whole_puts=True), FsspecAccess(None, whole_puts=True)):
        assert access.is_final(error)


@pytest.mark.parametrize(
    "error",
    [OSError("AWS Error ACCESS_DENIED during PutObject operation"), OSError("AWS Error NO_SUCH_BUCKET")],
)
def test_what_the_aws_library_of_pyarrow_refuses_is_not_tried_again(error):
    assert tries_of(error, ArrowAccess(None, whole_puts=True).is_final) == 1


def test_missing_credentials_behind_fsspec_are_not_tried_again():
    access = FsspecAccess(None, whole_puts=True)
    assert tries_of(botocore.exceptions.NoCredentialsError(), access.is_final) == 1
    assert tries_of(botocore.exceptions.EndpointConnectionError(endpoint_url="http://s3"), access.is_final) == 6


def tries_of(error, final):
    calls = []

    def fail():
        calls.append(1)
        raise error

    with pytest.raises(type(error)):
        patient([]).call(fail, final)
    return len(calls)


# ---------------------------------------------------------------------------------------------------- file systems


class LikeHdfs:
    """A file system like HDFS in pyarrow: a half-written file is visible, and a rename never overwrites a file."""

    def __init__(self):
        self.files = {}
        self.lose_answer = False

    def create_dir(self, path, *, recursive):
        pass

    def open_output_stream(self, path):
        files = self.files

        class Stream:
            def __enter__(self):
                files[path] = b""
                return self

            def write(self, data):
                files[path] += data

            def __exit__(self, *exc):
                return False

        return Stream()

    def open_input_file(self, path):
        import io

        if path not in self.files:
            raise FileNotFoundError(path)
        return io.BytesIO(self.files[path])

    def get_file_info(self, path):
        from pyarrow.fs import FileInfo, FileType

        return FileInfo(path, FileType.File if path in self.files else FileType.NotFound)

    def delete_file(self, path):
        if path not in self.files:
            raise FileNotFoundError(path)
        del self.files[path]

    def move(self, source, target):
        if target in self.files:
            raise OSError("rename failed: the target exists")
        self.files[target] = self.files.pop(source)
        if self.lose_answer:
            self.lose_answer = False
            raise OSError("connection reset")


class ReplacedObject:
    """Reads an object through pyarrow.fs as S3 does, while puts come between the look at its size and the read."""

    def __init__(self, *versions):
        self.versions = list(versions)  # after each read the next one stands there
        self.opened = 0

    def open_input_file(self, path):
        self.opened += 1
        return OpenObject(self, self.versions[0])


class OpenObject:
    def __init__(self, name, version):
        self.name, self.version = name, version

    def size(self):
        return len(self.version)

    def metadata(self):
        return {"ETag": self.version}

    def read(self):
        if len(self.name.versions) > 1:
            del self.name.versions[0]
        return self.name.versions[0][: self.size()].ljust(self.size(), b"\0")

    def close(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False


@pytest.mark.parametrize(
    ("versions", "opened"),
    [
        ([b"one"], 2),
        ([b"one", b"longer", b"longer"], 3),
        ([b"longer", b"one", b"one"], 3),
        ([b"one", b"two", b"longer", b"four", b"four"], 5),
    ],
)
def test_an_object_that_is_replaced_while_it_is_read_is_read_again(versions, opened):
    replaced = ReplacedObject(*versions)
    assert ArrowAccess(replaced, whole_puts=True).get("bucket/a") == versions[-1]
    assert replaced.opened == opened


def test_an_object_that_is_replaced_during_every_read_is_an_error_that_may_pass():
    access = ArrowAccess(ReplacedObject(*(b"x" * size for size in range(50))), whole_puts=True)
    with pytest.raises(OSError, match="replaced during each of 20 reads") as raised:
        access.get("bucket/a")
    assert not access.is_final(raised.value)


@pytest.fixture
def moto_object(s3_url):
    """Return access to an object of an S3 server, its path, and what replaces it."""
    opened = open_arrow(s3_url("parts"))
    assert opened is not None
    path = f"{opened.path}/part-1"
    return opened.access, path, lambda data: opened.access.put(path, data)


def test_an_object_that_is_replaced_while_a_stream_reads_it_is_an_error_that_names_it(moto_object):
    access, path, put = moto_object
    put(b"a" * (3 << 20))
    with access.open(path) as stream:
        assert stream.read(10) == b"a" * 10
        put(b"b" * (3 << 20))
        with pytest.raises(OSError, match=r"the object was replaced while it was read.*part") as raised:
            stream.read()
        assert not access.is_final(raised.value)
    with access.open(path) as stream:
        assert stream.seek(-5, 2) == (3 << 20) - 5 and stream.read() == b"b" * 5
        stream.seek(1 << 20)
        access.remove(path)
        with pytest.raises(OSError, match=r"the object was deleted while it was read.*part") as raised:
            stream.read()
        assert not access.is_final(raised.value)


def test_an_object_that_is_replaced_while_it_is_downloaded_is_an_error(moto_object, tmp_path, monkeypatch):
    access, path, put = moto_object
    put(b"a" * 100)
    opened = access.open

    def open_and_replace(of):
        stream = opened(of)
        put(b"b" * 100)
        return stream

    access.download(path, str(tmp_path / "whole"))
    assert (tmp_path / "whole").read_bytes() == b"a" * 100
    monkeypatch.setattr(access, "open", open_and_replace)
    with pytest.raises(OSError, match="the object was replaced while it was read"):
        access.download(path, str(tmp_path / "mixed"))


def test_on_a_file_system_drafts_are_renamed():
    hdfs = LikeHdfs()
    store = RemoteFiles(ArrowAccess(hdfs, whole_puts=False), "/dir", "hdfs://h/dir", patience=patient([]))
    store.publish("chk-1/_metadata", b"one")
    with pytest.raises(FileExistsError):
        store.publish("chk-1/_metadata", b"two")
    store.replace("alive", b"1")
    store.replace("alive", b"2")
    assert hdfs.files == {"/dir/chk-1/_metadata": b"one", "/dir/alive": b"2"}


def test_a_rename_whose_answer_is_lost_was_a_rename():
    hdfs = LikeHdfs()
    store = RemoteFiles(ArrowAccess(hdfs, whole_puts=False), "/dir", "hdfs://h/dir", patience=patient([]))
    hdfs.lose_answer = True
    store.publish("a", b"x")
    assert hdfs.files == {"/dir/a": b"x"}


class Failing(LocalFileSystem):
    """A file system that answers with an error about everything named `lost`."""

    def info(self, path, **kwargs):
        self._fail_if_lost(path)
        return super().info(path, **kwargs)

    def ls(self, path, detail=False, **kwargs):
        self._fail_if_lost(path)
        return super().ls(path, detail=detail, **kwargs)

    def _fail_if_lost(self, path):
        if "lost" in str(path):
            raise OSError(errno.EIO, "Input/output error")


def test_an_error_of_the_storage_is_not_taken_for_a_missing_file(tmp_path):
    """A newest checkpoint that seems to be missing would be passed over, and committed output would be repeated."""
    (tmp_path / "lost").write_text("")
    access = FsspecAccess(Failing(use_listings_cache=False), whole_puts=False)
    assert access.exists(str(tmp_path)) and not access.exists(str(tmp_path / "nothing"))
    with pytest.raises(OSError, match="Input/output error"):
        access.exists(str(tmp_path / "lost"))


def test_a_directory_that_cannot_be_listed_is_not_left_out(tmp_path):
    """A source would end without the records of the files in it."""
    for name in ("a/one", "lost/two", "three"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    good = FsspecAccess(LocalFileSystem(use_listings_cache=False), whole_puts=False)
    found = sorted(entry.path for entry in good.files_below(str(tmp_path), recursive=True))
    assert found == ["a/one", "lost/two", "three"]
    assert [entry.path for entry in good.files_below(str(tmp_path), recursive=False)] == ["three"]
    assert good.files_below(str(tmp_path / "nothing"), recursive=True) == []
    with pytest.raises(OSError, match="Input/output error"):
        FsspecAccess(Failing(use_listings_cache=False), whole_puts=False).files_below(str(tmp_path), recursive=True)
