"""Cached files of DataSet programs."""

import os

import pytest

from ekorn.batch.tasks.task_context import WorkerCache, packed_files
from ekorn.dataset import ExecutionEnvironment
from ekorn.datastream.functions import MapFunction
from ekorn.errors import JobExecutionError
from ekorn.graph.job_graph import CachedFile
from ekorn.testing import collect_locally


class Sent:
    """A broadcast."""

    def __init__(self, value):
        self.value = value


class Reading(MapFunction):
    def __init__(self, name):
        self.name = name

    def open(self, runtime_context):
        with open(runtime_context.get_distributed_cache().get_file(self.name)) as file:
            self.text = file.read()

    def map(self, value):
        return self.text * value


def test_a_function_finds_a_copy(tmp_path):
    (tmp_path / "words").write_text("ab")
    env = ExecutionEnvironment().set_parallelism(2)
    env.register_cached_file(str(tmp_path / "words"), "w")
    assert sorted(collect_locally(env.from_elements(1, 2).map(Reading("w")))) == ["ab", "abab"]
    with pytest.raises(JobExecutionError, match="no cached file is registered as 'x'; registered: 'w'"):
        collect_locally(env.from_elements(1).map(Reading("x")))


def test_a_file_that_does_not_exist_is_refused_before_the_job_runs(tmp_path):
    env = ExecutionEnvironment()
    env.register_cached_file(str(tmp_path / "nothing"), "w")
    with pytest.raises(FileNotFoundError, match="registered as the cached file 'w'"):
        collect_locally(env.from_elements(1))


def test_workers_of_a_cluster_unpack_what_the_driver_sends(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inner").write_text("deep")
    (tmp_path / "tool").write_text("run")
    files = (CachedFile("f", str(tmp_path / "folder")), CachedFile("t", str(tmp_path / "tool"), executable=True))
    packed = packed_files(files, Sent)
    (tmp_path / "folder" / "inner").unlink()  # a worker elsewhere does not see it
    (tmp_path / "tool").unlink()
    cache = WorkerCache("job of a cluster", packed)
    with open(f"{cache.get_file('f')}/inner") as file:
        assert file.read() == "deep"
    with open(cache.get_file("t")) as file:
        assert file.read() == "run"
    assert os.access(cache.get_file("t"), os.X_OK)
