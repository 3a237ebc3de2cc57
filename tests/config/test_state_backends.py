"""State backends set by programs and configuration files, and the settings of the job that follow."""

import sys

import pytest

from ekorn.common import Configuration
from ekorn.config.options.rocksdb import MEBIBYTE, PREFIX
from ekorn.config.settings.memory_settings import MemoryParts, SlotMemory, job_memory
from ekorn.config.settings.rocksdb_settings import RocksDBSettings
from ekorn.datastream import (
    EmbeddedRocksDBStateBackend,
    FsStateBackend,
    HashMapStateBackend,
    MemoryStateBackend,
    PredefinedOptions,
    RocksDBStateBackend,
    StreamExecutionEnvironment,
)
from ekorn.errors import ConfigurationError
from ekorn.testing.local_run import collect_locally


@pytest.fixture
def env():
    return StreamExecutionEnvironment(Configuration())


def settings_of(env):
    return env.job_settings("job")


def configured(**given):
    """Return a configuration with keys of RocksDB: `_` stands for a hyphen, `__` for a dot."""
    configuration = Configuration().set_string("state.backend.type", "rocksdb")
    for key, value in given.items():
        configuration.set_string(PREFIX + key.replace("__", ".").replace("_", "-"), value)
    return configuration


def rocksdb_of(env, configuration):
    env.configure(configuration)
    return settings_of(env).rocksdb


# ------------------------------------------------------------------------------------------------------- by the program


def test_hash_maps_are_the_default(env):
    assert env.get_state_backend() == HashMapStateBackend()
    assert settings_of(env).rocksdb is None


def test_memory_backend_keeps_checkpoints_in_the_driver(env):
    env.set_state_backend(MemoryStateBackend(max_state_size=1000, using_asynchronous_snapshots=False))
    settings = settings_of(env)
    assert settings.state_backend == "hashmap"
    assert (settings.checkpoints.storage, settings.checkpoints.max_state_bytes) == ("jobmanager", 1000)
    assert not settings.checkpoints.asynchronous
    assert MemoryStateBackend().get_max_state_size() == 5 * 1024 * 1024
    assert MemoryStateBackend().is_using_asynchronous_snapshots()


def test_fs_backend_keeps_checkpoints_in_files(env, tmp_path):
    backend = FsStateBackend(tmp_path, tmp_path / "savepoints", 100, 8192, False)
    settings = settings_of(env.set_state_backend(backend))
    assert settings.state_backend == "hashmap"
    assert (settings.checkpoints.storage, settings.checkpoints.directory) == ("filesystem", str(tmp_path))
    assert (settings.checkpoints.inline_threshold_bytes, settings.checkpoints.write_buffer_bytes) == (100, 8192)
    assert settings.savepoint_directory == str(tmp_path / "savepoints")
    assert not settings.checkpoints.asynchronous
    assert (backend.get_checkpoint_path(), backend.get_min_file_size_threshold()) == (str(tmp_path), 100)


def test_fs_backend_needs_a_directory():
    with pytest.raises(ValueError, match="checkpoint directory"):
        FsStateBackend()


def test_the_old_rocksdb_backend_is_rocksdb_with_files(env, tmp_path):
    settings = settings_of(env.set_state_backend(RocksDBStateBackend(tmp_path, False)))
    assert settings.state_backend == "rocksdb"
    assert (settings.checkpoints.storage, settings.checkpoints.directory) == ("filesystem", str(tmp_path))
    assert not settings.checkpoints.incremental


def test_the_old_rocksdb_backend_may_be_told_by_another_where_checkpoints_go(env):
    backend = RocksDBStateBackend(checkpoint_stream_backend=MemoryStateBackend(max_state_size=10))
    settings = settings_of(env.set_state_backend(backend))
    assert (settings.state_backend, settings.checkpoints.storage) == ("rocksdb", "jobmanager")
    assert settings.checkpoints.max_state_bytes == 10
    assert env.get_state_backend() is backend
    with pytest.raises(TypeError, match="FsStateBackend or a MemoryStateBackend"):
        RocksDBStateBackend(checkpoint_stream_backend=HashMapStateBackend())  # type: ignore[arg-type]


def test_what_the_rocksdb_backend_is_told_reaches_the_slots(env, tmp_path):
    backend = EmbeddedRocksDBStateBackend(False)
    backend.set_db_storage_paths(str(tmp_path / "a"), f"file://{tmp_path}/b")
    backend.set_predefined_options(PredefinedOptions.SPINNING_DISK_OPTIMIZED_HIGH_MEM)
    backend.set_options("my_package.MyOptions")
    backend.set_number_of_transfer_threads(7)
    settings = settings_of(env.set_state_backend(backend))
    assert not settings.checkpoints.incremental
    assert settings.rocksdb.local_directories == (f"{tmp_path}/a", f"{tmp_path}/b")
    assert settings.rocksdb.options_factory == "my_package.MyOptions"
    assert settings.rocksdb.transfer_threads == 7
    assert (settings.rocksdb.compaction_style, settings.rocksdb.block_cache_bytes) == ("LEVEL", 256 * MEBIBYTE)
    assert env.get_state_backend() is backend


def test_the_getters_give_what_was_set():
    backend = EmbeddedRocksDBStateBackend()
    assert backend.get_db_storage_paths() is None
    assert backend.get_options() is None
    assert backend.get_predefined_options() is PredefinedOptions.DEFAULT
    assert backend.get_number_of_transfer_threads() == 4
    assert backend.is_incremental_checkpoints_enabled()
    backend.set_db_storage_paths("/one,/two")
    assert backend.get_db_storage_paths() == ["/one", "/two"]
    # Of a URL Flink takes the path, not the host.
    backend.set_db_storage_paths("file://var/one/", "file:/two", "file:///three/four/")
    assert backend.get_db_storage_paths() == ["/one", "/two", "/three/four"]
    backend.set_db_storage_paths()
    assert backend.get_db_storage_paths() is None


def test_backends_take_the_positional_arguments_of_java(tmp_path):
    path = str(tmp_path)
    memory = MemoryStateBackend(MemoryStateBackend.DEFAULT_MAX_STATE_SIZE * 2, False)
    assert (memory.get_max_state_size(), memory.is_using_asynchronous_snapshots()) == (10 * MEBIBYTE, False)
    assert not MemoryStateBackend(False).is_using_asynchronous_snapshots()
    assert MemoryStateBackend(path, path, 7).get_max_state_size() == 7
    assert not FsStateBackend(path, False).is_using_asynchronous_snapshots()
    files = FsStateBackend(path, 100, False)
    assert (files.get_min_file_size_threshold(), files.is_using_asynchronous_snapshots()) == (100, False)
    assert RocksDBStateBackend(files, True).get_checkpoint_backend() is files


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda b: b.set_db_storage_paths("relative"), "not an absolute path"),
        (lambda b: b.set_predefined_options("DEFAULT"), "PredefinedOptions"),
        (lambda b: b.set_options("NoDots"), "import path"),
        (lambda b: b.set_number_of_transfer_threads(0), "at least 1"),
        (lambda b: EmbeddedRocksDBStateBackend("/a/path"), "True or False"),  # type: ignore[arg-type]
        (lambda b: MemoryStateBackend(1024, max_state_size=1024), "checkpoint_path is a path, got 1024"),
        (lambda b: MemoryStateBackend(1024, 1024), "savepoint_path is a path, got 1024"),  # type: ignore[arg-type]
        (MemoryStateBackend, "checkpoint_path is a path, got Embedded"),
        (lambda b: MemoryStateBackend(max_state_size="5 mb"), "a number of bytes, got '5 mb'"),  # type: ignore[arg-type]
        (lambda b: MemoryStateBackend(using_asynchronous_snapshots="no"), "True or False, got 'no'"),  # type: ignore[arg-type]
        (lambda b: FsStateBackend("/a/path", "/b", "/c"), "file_state_size_threshold is a number of bytes, got '/c'"),  # type: ignore[arg-type]
        (lambda b: FsStateBackend("/a/path", using_asynchronous_snapshots="no"), "True or False, got 'no'"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_meant_is_refused(call, why):
    with pytest.raises((ValueError, TypeError), match=why):
        call(EmbeddedRocksDBStateBackend())


# ----------------------------------------------------------------------------------------------------- by configuration


def test_flinks_keys_are_heeded(env):
    settings = rocksdb_of(
        env,
        configured(
            writebuffer__size="8mb",
            writebuffer__count="3",
            writebuffer__number_to_merge="2",
            block__cache_size="1mb",
            block__blocksize="16kb",
            block__metadata_blocksize="8kb",
            compaction__style="level",
            compaction__level__use_dynamic_size="true",
            compaction__level__target_file_size_base="2mb",
            compaction__level__max_size_level_base="20mb",
            compression__per__level="NO_COMPRESSION;ZSTD_COMPRESSION",
            thread__num="3",
            files__open="100",
            write_batch_size="1kb",
            memory__fixed_per_slot="64mb",
            bloom_filter__bits_per_key="12",
            checkpoint__transfer__thread__num="2",
            localdir="/x",
        ),
    )
    assert settings == RocksDBSettings(
        compaction_style="LEVEL",
        write_buffer_bytes=8 * MEBIBYTE,
        write_buffer_count=3,
        write_buffers_to_merge=2,
        block_cache_bytes=MEBIBYTE,
        block_bytes=16 * 1024,
        metadata_block_bytes=8 * 1024,
        bloom_bits_per_key=12,
        target_file_bytes=2 * MEBIBYTE,
        level_base_bytes=20 * MEBIBYTE,
        dynamic_level_size=True,
        compression_per_level=("NO_COMPRESSION", "ZSTD_COMPRESSION"),
        background_threads=3,
        open_files=100,
        write_batch_bytes=1024,
        memory_per_slot_bytes=64 * MEBIBYTE,
        local_directories=("/x",),
        transfer_threads=2,
    )


def test_single_keys_override_the_predefined_options(env):
    settings = rocksdb_of(env, configured(predefined_options="FLASH_SSD_OPTIMIZED", thread__num="9"))
    assert (settings.background_threads, settings.dynamic_level_size) == (9, True)


def test_a_filter_can_be_done_without(env):
    assert rocksdb_of(env, configured(use_bloom_filter="false")).bloom_bits_per_key == 0


def test_the_backend_is_described_by_the_configuration(env):
    env.configure(configured(localdir="/x", predefined_options="FLASH_SSD_OPTIMIZED"))
    backend = env.get_state_backend()
    assert isinstance(backend, EmbeddedRocksDBStateBackend)
    assert backend.get_db_storage_paths() == ["/x"]
    assert backend.get_predefined_options() is PredefinedOptions.FLASH_SSD_OPTIMIZED


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"timer_service__factory": "DISK"}, "expected one of ROCKSDB, HEAP"),
        ({"memory__managed": "true"}, "no managed memory: set taskmanager.memory.managed.size"),
        ({"memory__high_prio_pool_ratio": "0.3"}, "no pool of high priority"),
        ({"memory__write_buffer_ratio": "1.5"}, "between 0.01 and 0.99"),
        ({"compaction__style": "FIFO"}, "FIFO"),
        ({"bloom_filter__block_based_mode": "true"}, "no longer"),
        ({"memory__partitioned_index_filters": "false"}, "always partitioned"),
        ({"log__level": "DEBUG_LEVEL"}, "has no effect here and is therefore refused"),
        ({"writebuffer__sizes": "1mb"}, "did you mean 'state.backend.rocksdb.writebuffer.size'"),
        ({"writebuffer__size": "much"}, "expected a size"),
        ({"writebuffer__count": "1"}, "at least 2"),
        ({"compression__per__level": "MAGIC"}, "'MAGIC' is not a compression type"),
        ({"localdir": "relative"}, "not an absolute path"),
        ({"predefined_options": "FAST"}, "FAST"),
    ],
)
def test_what_cannot_be_honoured_is_refused_with_the_reason(env, given, why):
    with pytest.raises(ConfigurationError, match=why):
        rocksdb_of(env, configured(**given))


def test_what_is_so_anyway_may_be_said(env):
    said = configured(timer_service__factory="rocksdb", memory__partitioned_index_filters="true")
    assert rocksdb_of(env, said) == RocksDBSettings()


def in_slot(env, *, slots=1, **given):
    """Return the settings of RocksDB in a slot of a TaskManager with 1 GiB."""
    total = {"taskmanager.memory.process.size": "1g", "taskmanager.numberOfTaskSlots": str(slots)}
    configuration = Configuration.from_dict(configured(**given).to_dict() | total)
    return rocksdb_of(env, configuration).for_slot(job_memory(configuration, {}).other)


def test_rocksdb_gets_the_managed_memory_of_its_slot(env):
    assert in_slot(env, memory__managed="true").memory_per_slot_bytes == 241591914
    assert in_slot(env).memory_per_slot_bytes == 241591914, "as in Flink, this is the default"
    assert in_slot(env, slots=2).memory_per_slot_bytes == 241591914 // 2
    assert in_slot(env, memory__managed="false").memory_per_slot_bytes is None
    assert in_slot(env, slots=2, memory__fixed_per_tm="64 mb").memory_per_slot_bytes == 32 * MEBIBYTE
    assert in_slot(env, memory__fixed_per_slot="64 mb").memory_per_slot_bytes == 64 * MEBIBYTE


def test_entries_in_use_take_at_most_a_quarter_of_the_other_memory_of_a_bounded_slot(env):
    assert in_slot(env).cache_bytes == ((1 << 30) - 241591914) // 4
    few = configured().set_string("ekorn.state.rocksdb.cache-size", "1 mb")
    assert rocksdb_of(env, few).for_slot(SlotMemory(MemoryParts(task_heap=1 << 30))).cache_bytes == MEBIBYTE


def test_options_of_rocksdb_do_not_matter_to_hash_maps(env):
    configuration = configured(log__level="DEBUG_LEVEL").set_string("state.backend.type", "hashmap")
    assert rocksdb_of(env, configuration) is None


def test_a_missing_package_is_named_before_anything_runs(env, monkeypatch):
    monkeypatch.setitem(sys.modules, "rocksdict", None)
    env.configure(Configuration().set_string("state.backend.type", "rocksdb"))
    stream = env.from_collection([1]).key_by(lambda v: v).reduce(lambda a, b: a + b)
    with pytest.raises(ConfigurationError, match=r'pip install "ekorn\[rocksdb\]"'):
        collect_locally(stream)


# -------------------------------------------------------------------------------------------------------------- in jobs


class Cramped:
    """An options factory, which is called with the options that an instance is opened with."""

    seen = 0

    def create_db_options(self, options):
        Cramped.seen += 1
        options.set_write_buffer_size(1 << 16)


def test_a_job_keeps_its_state_in_the_folder_it_is_given_and_leaves_nothing_there(env, tmp_path):
    backend = EmbeddedRocksDBStateBackend()
    backend.set_db_storage_paths(str(tmp_path))
    backend.set_options(f"{__name__}.Cramped")
    env.set_state_backend(backend)
    stream = env.from_collection([("a", 1), ("b", 2), ("a", 3)]).key_by(lambda v: v[0]).sum(1)
    watched = stream.map(lambda v: (v, len(list(tmp_path.glob("*")))))
    found = collect_locally(watched)
    assert [v for v, _ in found] == [("a", 1), ("b", 2), ("a", 4)]
    assert {count for _, count in found} == {2}  # a folder, and the lock on it
    assert list(tmp_path.iterdir()) == []
    assert Cramped.seen > 0


def test_a_folder_that_cannot_be_made_is_named(env, tmp_path):
    (tmp_path / "file").write_text("")
    env.configure(configured(localdir=str(tmp_path / "file" / "below")))
    stream = env.from_collection([1]).key_by(lambda v: v).reduce(lambda a, b: a + b)
    with pytest.raises(Exception, match="cannot create a folder"):
        collect_locally(stream)


def test_a_factory_that_is_none_is_named(env):
    backend = EmbeddedRocksDBStateBackend()
    backend.set_options("ekorn.nothing.Here")
    env.set_state_backend(backend)
    stream = env.from_collection([1]).key_by(lambda v: v).reduce(lambda a, b: a + b)
    with pytest.raises(Exception, match=r"options-factory is 'ekorn.nothing.Here'"):
        collect_locally(stream)


def test_batch_jobs_have_one_key_at_a_time_and_need_no_disk(env, tmp_path):
    from ekorn.datastream import RuntimeExecutionMode

    backend = EmbeddedRocksDBStateBackend()
    backend.set_db_storage_paths(str(tmp_path / "unused"))
    env.set_state_backend(backend).set_runtime_mode(RuntimeExecutionMode.BATCH)
    stream = env.from_collection([("a", 1), ("b", 2), ("a", 3)]).key_by(lambda v: v[0]).sum(1)
    assert sorted(collect_locally(stream)) == [("a", 4), ("b", 2)]
    assert not (tmp_path / "unused").exists()
