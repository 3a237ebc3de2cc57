"""The environment: settings, their precedence, and sources."""

import os
import pickle
import subprocess
import sys
import threading

import pytest

from ekorn.common import Configuration, RestartStrategies, Row, Types, WatermarkStrategy
from ekorn.common.restart_strategy import FallbackRestartStrategyConfiguration
from ekorn.config.settings.deployment_settings import PythonArchive
from ekorn.connectors.collection_source import CollectionSource
from ekorn.datastream import (
    CheckpointingMode,
    HashMapStateBackend,
    RuntimeExecutionMode,
    SlotSharingGroup,
    StreamExecutionEnvironment,
)
from ekorn.errors import ConfigurationError, InvalidProgramError, RecordTypeError
from ekorn.functions.source_contract import Batch, Split
from ekorn.graph.specs import SourceSpec
from ekorn.testing.drawn_job import drawn_job


@pytest.fixture
def env(monkeypatch):
    monkeypatch.delenv("EKORN_CONF_DIR", raising=False)
    return StreamExecutionEnvironment.get_execution_environment()


def settings_of(env):
    return env.job_settings("job")


# ------------------------------------------------------------------------------------------- where settings come from


def test_defaults(env):
    assert env.get_parallelism() == 1
    assert env.get_max_parallelism() == -1
    assert env.get_buffer_timeout() == 100
    assert env.is_chaining_enabled()
    assert env.is_chaining_of_operators_with_different_max_parallelism_enabled()
    assert env.get_checkpoint_interval() == -1
    assert env.get_checkpointing_mode() is CheckpointingMode.EXACTLY_ONCE
    assert env.is_changelog_state_backend_enabled() is None
    assert env.get_default_savepoint_directory() is None
    assert env.get_state_backend() == HashMapStateBackend()
    assert env.get_restart_strategy() == FallbackRestartStrategyConfiguration()
    assert env.get_default_local_parallelism() == os.cpu_count()


def test_a_configuration_given_at_the_start_holds():
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration().set_string("parallelism.default", "3").set_string("my.key", "kept")
    )
    assert env.get_parallelism() == 3
    assert env.get_configuration().get_string("my.key") == "kept"


def test_the_configuration_is_copied():
    given = Configuration()
    StreamExecutionEnvironment.get_execution_environment(given).set_parallelism(2)
    assert given.key_set() == set()


def test_the_file_is_weaker_than_the_configuration_and_that_is_weaker_than_a_setter(tmp_path, monkeypatch):
    (tmp_path / "config.yaml").write_text(
        "parallelism.default: 2\npipeline:\n  max-parallelism: 64\nexecution.buffer-timeout: 7 ms\n"
    )
    monkeypatch.setenv("EKORN_CONF_DIR", str(tmp_path))
    env = StreamExecutionEnvironment.get_execution_environment()
    assert (env.get_parallelism(), env.get_max_parallelism(), env.get_buffer_timeout()) == (2, 64, 7)
    env = StreamExecutionEnvironment.get_execution_environment(Configuration().set_integer("parallelism.default", 3))
    assert (env.get_parallelism(), env.get_max_parallelism()) == (3, 64)
    env.configure(Configuration().set_integer("parallelism.default", 4))
    assert env.get_parallelism() == 4
    assert env.set_parallelism(5).get_parallelism() == 5


def test_an_old_key_in_a_stronger_place_beats_the_new_key_in_a_weaker_one(tmp_path, monkeypatch):
    (tmp_path / "config.yaml").write_text("execution.checkpointing.dir: file:///weak\n")
    monkeypatch.setenv("EKORN_CONF_DIR", str(tmp_path))
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration().set_string("state.checkpoints.dir", "file:///strong")
    )
    assert settings_of(env).checkpoints.directory == "file:///strong"


def test_of_one_source_the_new_key_beats_the_old(env):
    env.configure(
        Configuration()
        .set_string("state.savepoints.dir", "old")
        .set_string("execution.checkpointing.savepoint-dir", "new")
    )
    assert env.get_default_savepoint_directory() == "new"


def test_a_folder_without_a_configuration_file_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("EKORN_CONF_DIR", str(tmp_path))
    with pytest.raises(ConfigurationError, match=r"no config\.yaml"):
        StreamExecutionEnvironment.get_execution_environment()


def test_the_default_parallelism_of_new_environments(env):
    env.set_default_local_parallelism(3)
    try:
        assert env.get_default_local_parallelism() == 3
        assert env.get_parallelism() == 1
        assert StreamExecutionEnvironment.get_execution_environment().get_parallelism() == 3
    finally:
        env.set_default_local_parallelism(-1)
    assert StreamExecutionEnvironment.get_execution_environment().get_parallelism() == 1
    configured = Configuration().set_integer("parallelism.default", 2)
    assert StreamExecutionEnvironment.get_execution_environment(configured).get_parallelism() == 2


@pytest.mark.parametrize(
    "call", [StreamExecutionEnvironment.get_execution_environment, StreamExecutionEnvironment().configure]
)
def test_a_configuration_is_a_configuration(call):
    with pytest.raises(TypeError, match="Configuration"):
        call({"parallelism.default": "2"})


def test_setters_and_keys_speak_of_the_same(env):
    env.set_runtime_mode(RuntimeExecutionMode.BATCH).set_max_parallelism(10).disable_operator_chaining()
    env.set_default_savepoint_directory("/savepoints").set_state_backend(HashMapStateBackend())
    env.enable_checkpointing(500, CheckpointingMode.AT_LEAST_ONCE)
    keys = env.get_configuration()
    assert keys.get_string("execution.runtime-mode") == "BATCH"
    assert keys.get_integer("pipeline.max-parallelism") == 10
    assert keys.get_boolean("pipeline.operator-chaining.enabled") is False
    assert keys.get_string("execution.checkpointing.savepoint-dir") == "/savepoints"
    assert keys.get_string("state.backend.type") == "hashmap"
    assert keys.get_integer("execution.checkpointing.interval") == 500
    assert env.get_checkpointing_consistency_mode() is CheckpointingMode.AT_LEAST_ONCE
    env.get_configuration().set_integer("parallelism.default", 7)
    assert env.get_config().get_parallelism() == env.get_parallelism() == 7


@pytest.mark.parametrize(("millis", "settings"), [(0, 0), (5, 5), (-1, -1)])
def test_buffer_timeout(env, millis, settings):
    assert env.set_buffer_timeout(millis).get_buffer_timeout() == settings
    assert settings_of(env).buffer_timeout_ms == settings


@pytest.mark.parametrize("millis", [-2, 1.5, True])
def test_a_buffer_timeout_out_of_range_is_refused(env, millis):
    with pytest.raises(ValueError, match="buffer timeout"):
        env.set_buffer_timeout(millis)


def test_wrong_arguments_are_refused_where_they_are_written(env):
    with pytest.raises(TypeError, match="RuntimeExecutionMode"):
        env.set_runtime_mode("BATCH")
    with pytest.raises(TypeError, match="HashMapStateBackend"):
        env.set_state_backend("hashmap")
    with pytest.raises(TypeError, match="RestartStrategies"):
        env.set_restart_strategy("fixed-delay")
    with pytest.raises(TypeError, match="SlotSharingGroup"):
        env.register_slot_sharing_group("g")


def test_an_environment_cannot_be_sent(env):
    with pytest.raises(TypeError, match="cannot be used inside a function"):
        pickle.dumps(env)


# ------------------------------------------------------------------------------------------- settings of a job


def test_the_settings_of_a_job_that_sets_nothing(env):
    settings = settings_of(env)
    assert settings.checkpoints.interval_ms is None
    assert not settings.checkpoints.enabled
    assert settings.restart == RestartStrategies.no_restart()
    assert settings.restore_path is None
    assert settings.state_backend == "hashmap"


def test_restart_strategies_are_the_programs_then_the_configurations_then_the_default(env):
    env.enable_checkpointing(100)
    backs_off = RestartStrategies.exponential_delay_restart(1000, 60_000, 1.5, 3_600_000, 0.1)
    assert settings_of(env).restart == backs_off
    env.configure(Configuration().set_string("restart-strategy", "failure-rate"))
    assert settings_of(env).restart == RestartStrategies.failure_rate_restart(1, 60_000, 1000)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 10))
    assert settings_of(env).restart == RestartStrategies.fixed_delay_restart(3, 10)
    env.set_restart_strategy(RestartStrategies.fall_back_restart())
    assert settings_of(env).restart == RestartStrategies.failure_rate_restart(1, 60_000, 1000)


def test_a_restore_path(env):
    settings = settings_of(env.set_restore_path("/checkpoints/x/chk-3", allow_non_restored_state=True))
    assert (settings.restore_path, settings.allow_non_restored_state) == ("/checkpoints/x/chk-3", True)


def test_every_key_reaches_the_job(env):
    env.configure(Configuration().set_string("spark.executor.memory", "2g"))
    assert settings_of(env).configuration["spark.executor.memory"] == "2g"


def test_each_job_has_its_own_id(env):
    assert settings_of(env).job_id != settings_of(env).job_id


@pytest.mark.parametrize("name", ["jobmanager", "filesystem", "hashmap", "HashMap"])
def test_heap_backends_of_all_versions(env, name):
    env.configure(Configuration().set_string("state.backend", name).set_string("state.checkpoints.dir", "file:///c"))
    assert settings_of(env).state_backend == "hashmap"


def test_an_unknown_backend_is_refused(env):
    env.configure(Configuration().set_string("state.backend", "floppy"))
    with pytest.raises(ConfigurationError, match="floppy"):
        settings_of(env)
    with pytest.raises(ConfigurationError, match="floppy"):
        env.get_state_backend()


def test_a_changelog_backend_means_incremental_checkpoints(env):
    env.enable_changelog_state_backend(True)
    assert env.is_changelog_state_backend_enabled() is True
    assert settings_of(env).checkpoints.incremental


def test_python_dependencies(env, tmp_path):
    code, archive, listed, cache = tmp_path / "a.py", tmp_path / "m.zip", tmp_path / "r.txt", tmp_path / "cache"
    for path in (code, archive, listed):
        path.write_text("")
    cache.mkdir()
    env.add_python_file(str(code))
    env.add_python_file(str(code))
    env.add_python_file("hdfs:///b.py")
    env.add_python_archive(str(archive), "models")
    env.add_python_archive(str(archive))
    env.set_python_executable("models/bin/python")
    env.set_python_requirements(str(listed), str(cache))
    python = settings_of(env).python
    assert python.files == (str(code), "hdfs:///b.py")
    assert python.archives == (PythonArchive(str(archive), "models"), PythonArchive(str(archive)))
    assert python.executable == "models/bin/python"
    assert (python.requirements_file, python.requirements_cache_dir) == (str(listed), str(cache))


def test_a_python_file_that_is_not_there_is_refused(env, tmp_path):
    for call in (env.add_python_file, env.add_python_archive, env.set_python_requirements):
        with pytest.raises(FileNotFoundError, match="nowhere"):
            call(str(tmp_path / "nowhere"))


def test_jars_and_class_paths_go_to_spark(env):
    env.add_jars("file:///a.jar", "file:///b.jar")
    env.add_jars("file:///a.jar")
    env.add_classpaths("file:///c.jar")
    configuration = settings_of(env).configuration
    assert configuration["spark.jars"] == "file:///a.jar,file:///b.jar"
    assert configuration["spark.driver.extraClassPath"] == configuration["spark.executor.extraClassPath"] == "/c.jar"


def test_cached_files_have_unique_names(env):
    env.register_cached_file("a.txt", "words")
    env.register_cached_file("a.txt", "words")
    with pytest.raises(ValueError, match="already registered as 'words'"):
        env.register_cached_file("b.txt", "words")
    with pytest.raises(ValueError, match="name"):
        env.register_cached_file("b.txt", None)


def test_cached_files_of_the_configuration(env):
    env.configure(Configuration().set_string("pipeline.cached-files", "name:n,path:/p,executable:true;name:m,path:/q"))
    env.from_collection([1]).map(str)
    assert [(f.name, f.path, f.executable) for f in env.job_graph().settings.cached_files] == [
        ("n", "/p", True),
        ("m", "/q", False),
    ]
    env.configure(Configuration().set_string("pipeline.cached-files", "path:/p"))
    with pytest.raises(ConfigurationError, match="name:n,path:p"):
        env.job_graph()


def test_a_slot_sharing_group_means_one_thing(env):
    small = SlotSharingGroup.builder("g").set_cpu_cores(1).set_task_heap_memory_mb(100).build()
    env.register_slot_sharing_group(small).register_slot_sharing_group(small)
    with pytest.raises(ValueError, match="1 cores, 100 MiB heap, not nothing"):
        env.register_slot_sharing_group(SlotSharingGroup.builder("g").build())


def test_the_name_of_a_job(env):
    env.from_collection([1]).map(str)
    assert env.job_graph().name == "Ekorn Streaming Job"
    env.configure(Configuration().set_string("pipeline.name", "configured"))
    assert env.job_graph().name == "configured"
    assert env.job_graph("given").name == "given"


# ------------------------------------------------------------------------------------------- sources


def read_all(source, position=None, at_once=3):
    reader = source.create_reader(Split("all"), position)
    found = []
    while not reader.finished:
        batch = reader.read(at_once)
        assert isinstance(batch, Batch)
        assert batch.timestamps is None
        found += batch.values
    return found


def test_a_collection_is_read_in_order_from_any_position():
    source = CollectionSource(range(10_000))
    assert len(source.discover_splits(4)) == 1
    assert read_all(source, at_once=1000) == list(range(10_000))
    for position in (1, 4095, 4096, 4097, 9999, 10_000):
        assert read_all(source, position, at_once=500) == list(range(position, 10_000))


def test_an_empty_collection_is_finished_at_once():
    reader = CollectionSource([]).create_reader(Split("all"), None)
    assert reader.finished
    assert reader.read(10).values == []


def test_each_reader_has_objects_of_its_own():
    source = CollectionSource([[1], [2]])
    first = read_all(source)
    first[0].append(99)
    assert read_all(source) == [[1], [2]]


def source_of(stream):
    spec = drawn_job(stream).graph.vertices[0].operators[0].spec
    assert isinstance(spec, SourceSpec)
    return spec.source


def test_iterables_of_all_kinds_are_collections(env):
    for given in ([1, 2], (1, 2), (n for n in (1, 2)), range(1, 3), {1: "a", 2: "b"}.keys(), iter([1, 2])):
        assert read_all(source_of(env.from_collection(given))) == [1, 2]
    assert read_all(source_of(env.from_elements(1, 2))) == [1, 2]


@pytest.mark.parametrize("given", ["abc", b"abc", {"a": 1}, 5, None])
def test_what_is_no_collection_is_refused(env, given):
    with pytest.raises(TypeError, match=r"from_collection\(\) needs a collection"):
        env.from_collection(given)


def test_typed_collections_are_converted_at_once(env):
    stream = env.from_collection([43878, 1], Types.SHORT())
    assert read_all(source_of(stream)) == [-21658, 1]
    assert stream.get_type() == Types.SHORT()
    with pytest.raises(RecordTypeError, match="Integer"):
        env.from_collection([1, "x"], Types.INT())
    with pytest.raises(TypeError, match=r"write Types\.INT\(\.\.\.\)"):
        env.from_collection([1], Types.INT)


def test_a_record_that_cannot_be_sent_is_named(env):
    with pytest.raises(InvalidProgramError, match=r"record 4097, .*cannot be sent"):
        env.from_collection([*range(4097), threading.Lock()])


def test_sources_of_the_wrong_kind_are_refused(env):
    with pytest.raises(TypeError, match=r"from_source\(\) needs a Source"):
        env.from_source([1, 2], WatermarkStrategy.no_watermarks(), "numbers")
    with pytest.raises(TypeError, match=r"add_source\(\) needs a SourceFunction"):
        env.add_source(lambda ctx: None)
    with pytest.raises(TypeError, match="WatermarkStrategy"):
        env.from_source(CollectionSource([1]), "no watermarks", "numbers")


def test_a_source_may_say_its_type(env):
    class Typed(CollectionSource):
        def get_produced_type(self):
            return Types.LONG()

    strategy = WatermarkStrategy.no_watermarks()
    assert env.from_source(Typed([1]), strategy, "typed").get_type() == Types.LONG()
    assert env.from_source(Typed([1]), strategy, "typed", Types.INT()).get_type() == Types.INT()
    assert env.from_source(CollectionSource([1]), None, "x").get_type() == Types.PICKLED_BYTE_ARRAY()


def test_a_session_of_spark_is_handed_to_the_jobs_as_it_is():
    session = type("SparkSession", (), {"__module__": "pyspark.sql.session"})()
    env = StreamExecutionEnvironment.get_execution_environment(spark=session)
    assert env.job_settings("job").spark_session is session
    assert StreamExecutionEnvironment.get_execution_environment().job_settings("job").spark_session is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("local[2]", r"spark must be the SparkSession that runs the jobs, got 'local\[2\]'"),
        (type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})(), "a Spark Connect session"),
    ],
)
def test_something_else_than_a_session_of_spark_is_refused(given, said):
    with pytest.raises(TypeError, match=said):
        StreamExecutionEnvironment.get_execution_environment(spark=given)


def test_functions_of_a_main_script_are_sent_with_the_name_of_row_and_not_with_a_class_of_its_own():
    program = """
import sys
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.table import Row
StreamExecutionEnvironment.get_execution_environment()
import cloudpickle
sys.stdout.buffer.write(cloudpickle.dumps(lambda: Row(1)))
"""
    sent = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout
    assert type(pickle.loads(sent)()) is Row
