"""Cached files and folders from this machine and from elsewhere, in slots with and without the driver's disk."""

import functools
import http.server
import os
import subprocess
import threading

import fsspec
import pytest

from ekorn.datastream import MapFunction, StreamExecutionEnvironment
from ekorn.engine.slots.slot_deployments import send_files
from ekorn.errors import DeploymentError, JobExecutionError, UnsupportedOperationError
from ekorn.graph.job_graph import CachedFile
from ekorn.slot_protocol.cached_files import CachedFiles, local_path
from ekorn.slot_protocol.deployment import Deployment
from ekorn.storage.file_store import open_files
from ekorn.storage.locations import join
from ekorn.testing.drawn_job import drawn_job
from ekorn.testing.local_run import collect_locally
from ekorn.testing.process_engine import on_process_engine, process_engine
from ekorn.testing.slot_processes import slot_processes
from tests.s3_server import s3_endpoint, s3_url  # noqa: F401


def tree(path):
    """Return the files below a path by relative path, each with its content and whether it can be executed."""
    if os.path.isfile(path):
        return read(path)
    files = [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]
    return {os.path.relpath(file, path): read(file) for file in files}


def read(path):
    with open(path, "rb") as file:
        return file.read(), os.access(path, os.X_OK)


@pytest.fixture
def folder(tmp_path):
    """A folder with a script, a folder inside, and a link."""
    root = tmp_path / "some folder"
    (root / "inner").mkdir(parents=True)
    (root / "words.txt").write_text("some words")
    (root / "inner" / "script.sh").write_text("#!/bin/sh\necho ran\n")
    (root / "link").symlink_to(root / "words.txt")
    return root


@pytest.fixture
def cache(tmp_path):
    return CachedFiles(str(tmp_path / "slot"))


# -------------------------------------------------------------------------------------------------- in one slot


def test_a_file_keeps_its_own_name_and_its_content(cache, folder):
    cache.fetch([CachedFile("words", str(folder / "words.txt")), CachedFile("../../odd name", f"file://{folder}/link")])
    assert os.path.basename(cache.path_of("words")) == "words.txt"
    assert tree(cache.path_of("words")) == tree(cache.path_of("../../odd name")) == (b"some words", False)


@pytest.mark.parametrize("executable", [True, False])
def test_a_folder_comes_with_all_it_holds(cache, folder, executable):
    cache.fetch([CachedFile("all", str(folder), executable)])
    assert tree(cache.path_of("all")) == {
        "words.txt": (b"some words", executable),
        "link": (b"some words", executable),
        "inner/script.sh": (b"#!/bin/sh\necho ran\n", executable),
    }


def test_an_executable_file_can_be_executed(cache, folder):
    cache.fetch([CachedFile("script", str(folder / "inner" / "script.sh"), True)])
    assert subprocess.run([cache.path_of("script")], capture_output=True, text=True, check=True).stdout == "ran\n"


def test_a_copy_is_made_once(cache, folder):
    file = CachedFile("words", str(folder / "words.txt"))
    cache.fetch([file])
    (folder / "words.txt").write_text("other words")
    cache.fetch([file])
    assert tree(cache.path_of("words"))[0] == b"some words"


def test_a_copy_that_was_interrupted_is_made_again(cache, folder, monkeypatch):
    file = CachedFile("all", str(folder))
    with monkeypatch.context() as broken:
        broken.setattr(os, "rename", lambda *_: (_ for _ in ()).throw(OSError("the disk is full")))
        with pytest.raises(DeploymentError, match=r"'all' cannot be copied from .*: the disk is full"):
            cache.fetch([file])
    cache.fetch([file])
    assert len(tree(cache.path_of("all"))) == 3


def test_names_that_were_not_registered_are_refused(cache, folder):
    cache.fetch([CachedFile("words", str(folder / "words.txt"))])
    for name in ("other", None):
        with pytest.raises(UnsupportedOperationError, match=f"{name!r}; registered: 'words'"):
            cache.path_of(name)


def test_an_address_without_a_scheme_or_with_the_file_scheme_is_of_this_machine():
    assert local_path("file:///a/some%20file") == "/a/some file"
    assert local_path("file.txt") == os.path.abspath("file.txt")
    assert local_path("s3://bucket/file") is None


# ------------------------------------------------------------------------------------------------ from elsewhere


@pytest.fixture
def server(folder):
    """The address of an HTTP server for the folder."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    handler = functools.partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


def test_a_file_is_fetched_over_http(cache, server):
    cache.fetch([CachedFile("script", f"{server}/inner/script.sh?version=3", True)])
    assert os.path.basename(cache.path_of("script")) == "script.sh"
    assert tree(cache.path_of("script")) == (b"#!/bin/sh\necho ran\n", True)


def test_files_and_folders_are_fetched_from_what_fsspec_knows(cache):
    memory = fsspec.filesystem("memory")
    memory.pipe({"/bucket/a": b"1", "/bucket/deep/b": b"2"})
    try:
        cache.fetch([CachedFile("all", "memory://bucket"), CachedFile("one", "memory://bucket/deep/b", True)])
    finally:
        memory.rm("/bucket", recursive=True)
    assert tree(cache.path_of("all")) == {"a": (b"1", False), "deep/b": (b"2", False)}
    assert tree(cache.path_of("one")) == (b"2", True)


def test_files_and_folders_are_fetched_from_s3(cache, s3_url):  # noqa: F811
    directory = s3_url("cached")
    store = open_files(directory)
    store.write("words.txt", b"some words")
    store.write("inner/script.sh", b"echo ran")
    whole = CachedFile("all", directory.replace("s3://", "s3a://"))
    cache.fetch([whole, CachedFile("one", join(directory, "words.txt"))])
    assert tree(cache.path_of("all")) == {"words.txt": (b"some words", False), "inner/script.sh": (b"echo ran", False)}
    assert os.path.basename(cache.path_of("one")) == "words.txt"
    assert tree(cache.path_of("one")) == (b"some words", False)


@pytest.mark.parametrize("url", ["nosuch://user:hidden-secret@host/file", "http://user:hidden-secret@127.0.0.1:1/file"])
def test_the_error_of_a_download_names_the_address_without_its_secrets(cache, url):
    with pytest.raises(DeploymentError, match="'it' cannot be copied from") as caught:
        cache.fetch([CachedFile("it", url)])
    assert "hidden-secret" not in str(caught.value)


# ---------------------------------------------------------------------------------------------------- in whole jobs


class Looks(MapFunction):
    """Maps every record to the cached files that it finds."""

    def __init__(self, *names):
        self.names = names

    def open(self, runtime_context):
        cache = runtime_context.get_distributed_cache()
        self.found = [tree(cache.get_file(name)) for name in self.names]

    def map(self, value):
        return self.found


def job(folder, **names):
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    for name, (path, executable) in names.items():
        env.register_cached_file(path, name, executable)
    return env.from_collection([1, 2, 3]).map(Looks(*names))


@pytest.mark.heavy
@pytest.mark.parametrize("registering", [False, True], ids=["children", "registering"])
def test_slots_find_the_files_whether_or_not_they_see_the_drivers_disk(folder, registering, monkeypatch):
    sent_to = []

    def send_in_small_parts(slot, files):
        sent_to.append(slot.number)
        return send_files(slot, files, part_bytes=1024)

    monkeypatch.setattr("ekorn.engine.slots.slot_deployments.send_files", send_in_small_parts)
    (folder / "large").write_bytes(os.urandom(100_000))
    stream = job(folder, all=(str(folder), False), script=(str(folder / "inner" / "script.sh"), True))
    with on_process_engine(registering=registering), stream.execute_and_collect() as records:
        found = list(records)
    script = (b"#!/bin/sh\necho ran\n", True)
    assert found == [[tree(folder), script]] * 3
    assert sorted(sent_to) == ([0, 1] if registering else [])


class SlotStandIn:
    """Stands in for a slot's handle: gives the parts of files to a cache in this process."""

    def __init__(self, cache):
        self.cache = cache
        self.requests = []
        self.error = None

    def tell(self, request):
        self.requests.append(request)
        if self.error is None:
            self.cache.receive(request.number, request.file, request.part, last=request.last, first=request.first)

    def answer(self):
        return self.error


def test_a_large_file_is_sent_in_parts(cache, folder):
    content = os.urandom(10 << 20)
    (folder / "large").write_bytes(content)
    files = (CachedFile("far", "s3://bucket/file"), CachedFile("large", str(folder / "large")))
    slot = SlotStandIn(cache)
    assert send_files(slot, files) is None
    assert len(slot.requests) == 3
    cache.fetch(files[1:2] * 2)
    assert tree(cache.path_of("large")) == (content, False)


def test_a_slot_that_cannot_take_a_file_says_why(cache, folder):
    slot = SlotStandIn(cache)
    slot.error = OSError("no space left")
    assert send_files(slot, (CachedFile("all", str(folder)),)) is slot.error
    assert len(slot.requests) == 1
    failure = send_files(SlotStandIn(cache), (CachedFile("gone", str(folder / "gone")),))
    assert isinstance(failure, DeploymentError) and "'gone' cannot be read" in str(failure)


def test_a_file_that_broke_off_is_sent_again_from_its_start(cache, folder):
    content = os.urandom(10 << 20)
    (folder / "large").write_bytes(content)
    files = (CachedFile("large", str(folder / "large")),)
    slot = SlotStandIn(cache)
    slot.answer = lambda: OSError("no space left") if len(slot.requests) == 2 else None  # type: ignore[method-assign]
    assert isinstance(send_files(slot, files), OSError)
    assert send_files(slot, files) is None
    cache.fetch(files)
    assert tree(cache.path_of("large")) == (content, False)


@pytest.mark.heavy
def test_files_go_to_all_slots_though_some_fail_and_again_to_those_that_failed(folder, monkeypatch):
    sent, broken = [], {0, 2}

    def sending(slot, files):
        sent.append(slot.number)
        return OSError(f"disk {slot.number} is full") if slot.number in broken else None

    monkeypatch.setattr("ekorn.engine.slots.slot_deployments.send_files", sending)
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(3)
    env.from_collection([1]).map(lambda v: v).print()
    graph = drawn_job(env, "job").graph
    engine = process_engine(graph, slot_processes(graph.slot_count, registering=True))
    try:
        failure = engine.deploy(Deployment("ab" * 16, graph, 0))
        assert sorted(sent) == [0, 1, 2]
        assert "slot 0: disk 0 is full; slot 2: disk 2 is full" in str(failure.error)  # type: ignore[union-attr]
        sent.clear()
        broken.clear()
        assert engine.deploy(Deployment("ab" * 16, graph, 1)) is None
        assert sent == [0, 2]
    finally:
        engine.shutdown()


@pytest.mark.heavy
def test_files_go_to_the_slots_that_were_made_ready_for_a_rescale(folder, monkeypatch):
    sent = []
    monkeypatch.setattr(
        "ekorn.engine.slots.slot_deployments.send_files", lambda slot, files: sent.append(slot.number) or None
    )

    def graph_at(parallelism):
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
        env.from_collection([1]).map(lambda v: v).print()
        return drawn_job(env, "job").graph

    before, after = graph_at(1), graph_at(2)
    engine = process_engine(before, slot_processes(before.slot_count, registering=True))
    try:
        assert engine.deploy(Deployment("ab" * 16, before, 0)) is None
        engine.prepare(after)
        assert sent == [0]
        assert engine.deploy(Deployment("ab" * 16, after, 1)) is None
        assert sent == [0, 1]
    finally:
        engine.shutdown()


def test_a_missing_file_is_reported_before_the_job_starts(folder, tmp_path):
    stream = job(folder, gone=(str(tmp_path / "gone"), False))
    with pytest.raises(FileNotFoundError, match="registered as the cached file 'gone'"):
        collect_locally(stream)


def test_an_address_that_cannot_be_read_fails_the_job(folder):
    with pytest.raises(JobExecutionError, match=r"'far' cannot be copied from 'http://127\.0\.0\.1:1/x'"):
        collect_locally(job(folder, far=("http://127.0.0.1:1/x", False)))


def test_a_relative_path_starts_at_the_working_directory_of_the_program(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert collect_locally(job(folder, words=("words.txt", False))) == [[(b"some words", False)]] * 3
