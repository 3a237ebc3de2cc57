"""The settings of a job reach RocksDB: read back from the file of options that every instance writes."""

import configparser
import glob
import io
import itertools
import os
from dataclasses import replace

import pytest
import rocksdict

from ekorn.config.settings.rocksdb_settings import RocksDBSettings
from ekorn.errors import ConfigurationError
from ekorn.functions.state.state_descriptors import ValueStateDescriptor
from ekorn.state.rocksdb.store_options import make_options
from tests.state.backends import SMALL, rocksdb

SETTINGS = replace(
    SMALL,
    write_buffer_count=5,
    write_buffers_to_merge=3,
    block_bytes=8192,
    metadata_block_bytes=2048,
    bloom_bits_per_key=7,
    target_file_bytes=3 << 20,
    level_base_bytes=5 << 20,
    background_threads=3,
    open_files=100,
)


class Written:
    """The options with which an instance of these settings was opened."""

    def __init__(self, folder, settings):
        db = rocksdict.Rdict(str(folder), make_options(rocksdict, settings))
        db.close()
        newest = max(glob.glob(os.path.join(str(folder), "OPTIONS-*")))
        with open(newest) as file:
            text = "\n".join(line for line in file.read().splitlines() if not line.strip().startswith("#"))
        self._file = configparser.RawConfigParser(strict=False)
        self._file.read_file(io.StringIO(text))

    def section(self, beginning):
        name = next(name for name in self._file.sections() if name.startswith(beginning))
        return {key.strip(): value.strip() for key, value in self._file.items(name)}


@pytest.fixture
def written(tmp_path):
    count = itertools.count()
    return lambda **changes: Written(tmp_path / str(next(count)), replace(SETTINGS, **changes))


def test_sizes_and_counts_are_those_of_the_job(written):
    found = written()
    assert (
        found.section("DBOptions").items()
        >= {
            "max_background_jobs": "3",
            "max_open_files": "100",
            "max_manifest_file_size": str(1 << 16),
            "keep_log_file_num": "2",
            "stats_dump_period_sec": "0",
        }.items()
    )
    assert (
        found.section("CFOptions").items()
        >= {
            "write_buffer_size": str(SETTINGS.write_buffer_bytes),
            "max_write_buffer_number": "5",
            "min_write_buffer_number_to_merge": "3",
            "target_file_size_base": str(3 << 20),
            "max_bytes_for_level_base": str(5 << 20),
        }.items()
    )
    assert (
        found.section("TableOptions").items()
        >= {
            "block_size": "8192",
            "metadata_block_size": "2048",
            "format_version": "5",
        }.items()
    )


def test_indexes_and_filters_are_bounded_by_the_cache_and_read_in_parts(written):
    table = written().section("TableOptions")
    assert (
        table.items()
        >= {
            "cache_index_and_filter_blocks": "true",
            "index_type": "kTwoLevelIndexSearch",
            "partition_filters": "true",
            "pin_top_level_index_and_filter": "true",
            "pin_l0_filter_and_index_blocks_in_cache": "true",
        }.items()
    )
    assert table["filter_policy"].startswith("bloomfilter")


def test_without_bits_there_is_no_bloom_filter(written):
    assert written(bloom_bits_per_key=0).section("TableOptions")["filter_policy"] == "nullptr"
    assert written(bloom_bits_per_key=1).section("TableOptions")["filter_policy"].startswith("bloomfilter")


def test_universal_compaction_is_the_default_with_small_new_files(written):
    found = written().section("CFOptions")
    assert (
        found.items()
        >= {
            "compaction_style": "kCompactionStyleUniversal",
            "num_levels": "7",
            "level0_file_num_compaction_trigger": "14",
            "level0_slowdown_writes_trigger": "28",
            "level0_stop_writes_trigger": "42",
            "disable_auto_compactions": "false",
            "level_compaction_dynamic_level_bytes": "false",
        }.items()
    )
    assert "max_size_amplification_percent=100;" in found["compaction_options_universal"]
    assert found["compression_per_level"] == ":".join(["kZSTD"] * 6 + ["kLZ4Compression"])


@pytest.mark.parametrize("style", ["LEVEL", "NONE"])
def test_other_styles_of_compaction(written, style):
    found = written(compaction_style=style, dynamic_level_size=True).section("CFOptions")
    assert found["compaction_style"] == "kCompactionStyleLevel"
    assert found["compression"] == "kLZ4Compression"
    assert "compression_per_level" not in found
    assert found["disable_auto_compactions"] == ("true" if style == "NONE" else "false")
    assert found["level_compaction_dynamic_level_bytes"] == "true"


def test_compression_is_what_the_job_asks_for(written):
    one = written(compression_per_level=("SNAPPY_COMPRESSION",)).section("CFOptions")
    assert one["compression"] == "kSnappyCompression"
    assert "compression_per_level" not in one
    two = written(compression_per_level=("NO_COMPRESSION", "ZSTD_COMPRESSION")).section("CFOptions")
    assert two["compression_per_level"] == "kNoCompression:kZSTD"


class Factory:
    """What a job names as its options factory."""

    def create_db_options(self, options):
        options.set_max_open_files(77)


class NoFactory:
    """A class without the method."""


def test_an_options_factory_has_the_last_word(written):
    for path in (f"{__name__}.Factory", f"{__name__}:Factory"):
        assert written(options_factory=path).section("DBOptions")["max_open_files"] == "77"


@pytest.mark.parametrize("path", ["no.such.module.Factory", f"{__name__}.Missing", f"{__name__}.NoFactory", "Factory"])
def test_a_factory_that_cannot_be_used_is_named(path):
    with pytest.raises(ConfigurationError, match=r"options-factory is .*, which is not a usable Python class: ."):
        make_options(rocksdict, RocksDBSettings(options_factory=path))


def test_with_one_sum_for_both_the_write_buffers_take_half_of_the_cache():
    backends = [rocksdb(settings=replace(SMALL, memory_per_slot_bytes=6 << 20)) for _ in range(2)]
    for backend in backends:
        state = backend.state(ValueStateDescriptor("state"))
        for key in range(2_000):
            backend.cell[0] = key
            state.update("x" * 1_000)
        backend.cell[0] = 7
        assert state.value() == "x" * 1_000
        backend.close()
