"""Checkpoint settings: setters, keys and the settings of the job."""

import logging
import warnings

import pytest

from ekorn.common import Configuration, Duration
from ekorn.datastream import (
    CheckpointConfig,
    CheckpointingMode,
    ExternalizedCheckpointRetention,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
    StreamExecutionEnvironment,
)
from ekorn.errors import ConfigurationError, ProgramWarning

RETAIN = ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION


@pytest.fixture
def config():
    return CheckpointConfig()


def configured(**keys):
    prefix = "execution.checkpointing."
    return CheckpointConfig(Configuration.from_dict({prefix + k.replace("_", "-"): v for k, v in keys.items()}))


def test_defaults(config):
    assert config.get_checkpoint_interval() == -1
    assert not config.is_checkpointing_enabled()
    assert config.get_checkpointing_mode() is CheckpointingMode.EXACTLY_ONCE
    assert config.get_checkpoint_timeout() == 600_000
    assert config.get_min_pause_between_checkpoints() == 0
    assert config.get_max_concurrent_checkpoints() == 1
    assert config.get_tolerable_checkpoint_failure_number() == 0
    assert config.is_fail_on_checkpointing_errors()
    assert not config.is_externalized_checkpoints_enabled()
    assert config.get_externalized_checkpoint_retention() is ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
    assert not config.is_unaligned_checkpoints_enabled()
    assert not config.is_force_unaligned_checkpoints()
    assert not config.is_force_checkpointing()
    assert not config.is_prefer_checkpoint_for_recovery()
    assert config.get_aligned_checkpoint_timeout() == config.get_alignment_timeout() == Duration.of_millis(0)
    assert config.get_checkpoint_id_of_ignored_in_flight_data() == -1
    assert isinstance(config.get_checkpoint_storage(), JobManagerCheckpointStorage)


def test_setters_are_read_back_and_reach_the_job(config, tmp_path):
    (
        config.set_checkpoint_interval(1000)
        .set_checkpointing_mode(CheckpointingMode.AT_LEAST_ONCE)
        .set_checkpoint_timeout(2000)
        .set_min_pause_between_checkpoints(30)
        .set_tolerable_checkpoint_failure_number(4)
        .set_externalized_checkpoint_retention(RETAIN)
        .set_aligned_checkpoint_timeout(Duration.of_seconds(1))
        .set_prefer_checkpoint_for_recovery(True)
        .set_checkpoint_id_of_ignored_in_flight_data(7)
        .set_checkpoint_storage_dir(tmp_path)
    )
    assert config.is_externalized_checkpoints_enabled()
    assert config.get_alignment_timeout() == Duration.of_seconds(1)
    settings = config.to_settings()
    assert settings.enabled
    assert (settings.interval_ms, settings.timeout_ms, settings.min_pause_ms) == (1000, 2000, 30)
    assert settings.mode is CheckpointingMode.AT_LEAST_ONCE
    assert settings.tolerable_failures == 4
    assert settings.retention is RETAIN
    assert settings.prefer_checkpoint_for_recovery
    assert settings.ignored_in_flight_checkpoint_id == 7
    assert (settings.storage, settings.directory) == ("filesystem", str(tmp_path))


def test_keys_say_the_same_as_setters():
    config = configured(
        interval="10 s",
        mode="at_least_once",
        timeout="1 min",
        min_pause="500 ms",
        max_concurrent_checkpoints="3",
        tolerable_failed_checkpoints="2",
        externalized_checkpoint_retention="DELETE_ON_CANCELLATION",
    )
    assert config.get_checkpoint_interval() == 10_000
    assert config.is_checkpointing_enabled()
    assert config.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE
    assert config.get_checkpoint_timeout() == 60_000
    assert config.get_min_pause_between_checkpoints() == 500
    assert config.get_max_concurrent_checkpoints() == 3
    assert config.get_tolerable_checkpoint_failure_number() == 2
    assert config.get_externalized_checkpoint_retention() is ExternalizedCheckpointRetention.DELETE_ON_CANCELLATION


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ("set_checkpoint_interval", 9),
        ("set_checkpoint_interval", -1),
        ("set_checkpoint_timeout", 9),
        ("set_min_pause_between_checkpoints", -1),
        ("set_max_concurrent_checkpoints", 0),
        ("set_tolerable_checkpoint_failure_number", -1),
        ("set_checkpoint_id_of_ignored_in_flight_data", -2),
    ],
)
def test_values_out_of_range_are_refused(config, call, value):
    with pytest.raises(ValueError, match="must be at least"):
        getattr(config, call)(value)


@pytest.mark.parametrize("value", [1.5, "10", None, True])
def test_a_number_is_a_number(config, value):
    with pytest.raises(TypeError, match="whole number"):
        config.set_checkpoint_interval(value)


def test_enums_are_enums(config):
    with pytest.raises(TypeError, match="CheckpointingMode"):
        config.set_checkpointing_mode("EXACTLY_ONCE")
    with pytest.raises(TypeError, match="ExternalizedCheckpointRetention"):
        config.set_externalized_checkpoint_retention("RETAIN_ON_CANCELLATION")


@pytest.mark.parametrize("keys", [{"interval": "5 ms"}, {"timeout": "1 ms"}, {"storage": "paper"}])
def test_keys_out_of_range_are_refused_when_the_job_starts(keys):
    with pytest.raises(ConfigurationError, match=r"execution\.checkpointing"):
        configured(**keys).to_settings()


def test_an_interval_of_zero_is_off():
    assert configured(interval="0").to_settings().interval_ms is None


def test_the_interval_is_at_least_the_pause(config):
    config.set_checkpoint_interval(10).set_min_pause_between_checkpoints(500).set_max_concurrent_checkpoints(1)
    settings = config.to_settings()
    assert (settings.interval_ms, settings.max_concurrent) == (500, 1)


@pytest.mark.parametrize(
    "calls",
    [
        lambda config: config.set_min_pause_between_checkpoints(500).set_max_concurrent_checkpoints(3),
        lambda config: config.set_max_concurrent_checkpoints(3).set_min_pause_between_checkpoints(500),
        lambda config: configured(min_pause="500 ms", max_concurrent_checkpoints=3).to_settings(),
    ],
)
def test_a_pause_and_several_concurrent_checkpoints_are_refused(config, calls):
    with pytest.raises(ConfigurationError, match=r"max-concurrent-checkpoints is 3 and .*min-pause is 500 ms"):
        calls(config)


def test_concurrent_checkpoints_without_a_pause(config):
    assert config.set_max_concurrent_checkpoints(3).to_settings().max_concurrent == 3


def test_fewer_than_one_retained_checkpoint_means_one(caplog):
    with caplog.at_level(logging.WARNING):
        assert configured(num_retained="0").to_settings().num_retained == 1
    assert "num-retained" in caplog.text


# ------------------------------------------------------------------------------------------- failures of checkpoints


def test_fail_on_errors_is_a_number_of_tolerable_failures(config):
    with pytest.warns(DeprecationWarning, match="set_tolerable"):
        config.set_fail_on_checkpointing_errors(False)
    assert not config.is_fail_on_checkpointing_errors()
    assert config.get_tolerable_checkpoint_failure_number() == 2**31 - 1
    with pytest.warns(DeprecationWarning):
        config.set_fail_on_checkpointing_errors(True)
    assert config.is_fail_on_checkpointing_errors()
    config.set_tolerable_checkpoint_failure_number(3)
    assert config.get_tolerable_checkpoint_failure_number() == 3


def test_an_explicit_number_wins_over_fail_on_errors(config, caplog):
    config.set_tolerable_checkpoint_failure_number(3)
    with pytest.warns(DeprecationWarning), caplog.at_level(logging.WARNING):
        config.set_fail_on_checkpointing_errors(True)
    assert config.get_tolerable_checkpoint_failure_number() == 3
    assert "no effect" in caplog.text


def test_minus_one_in_the_configuration_acts_as_zero():
    assert configured(tolerable_failed_checkpoints="-1").get_tolerable_checkpoint_failure_number() == 0


@pytest.mark.parametrize("call", ["set_externalized_checkpoint_cleanup", "enable_externalized_checkpoints"])
def test_older_names_of_retention(config, call):
    with pytest.warns(DeprecationWarning, match="set_externalized_checkpoint_retention"):
        getattr(config, call)(RETAIN)
    assert config.get_externalized_checkpoint_retention() is RETAIN


# ------------------------------------------------------------------------------------------- unaligned


def test_unaligned_checkpoints(config):
    assert config.enable_unaligned_checkpoints().to_settings().unaligned
    assert not config.disable_unaligned_checkpoints().to_settings().unaligned


def test_unaligned_checkpoints_need_one_at_a_time(config):
    config.enable_unaligned_checkpoints().set_max_concurrent_checkpoints(2)
    with pytest.raises(ConfigurationError, match="max-concurrent-checkpoints to be 1, got 2"):
        config.to_settings()


def test_unaligned_checkpoints_are_off_with_at_least_once(config, caplog):
    config.enable_unaligned_checkpoints().set_checkpointing_mode(CheckpointingMode.AT_LEAST_ONCE)
    assert not config.is_unaligned_checkpoints_enabled()
    with caplog.at_level(logging.WARNING):
        assert not config.to_settings().unaligned
    assert "EXACTLY_ONCE" in caplog.text


# ------------------------------------------------------------------------------------------- storage


def test_storage_follows_the_directory():
    assert configured().to_settings().storage == "jobmanager"
    settings = configured(dir="file:///checkpoints").to_settings()
    assert (settings.storage, settings.directory) == ("filesystem", "file:///checkpoints")


def test_files_need_a_directory():
    with pytest.raises(ConfigurationError, match="no directory is set"):
        configured(storage="filesystem").to_settings()


def test_old_backend_names_say_where_checkpoints_go():
    keys = {"state.backend.type": "filesystem"}
    with pytest.raises(ConfigurationError, match="no directory is set"):
        CheckpointConfig(Configuration.from_dict(keys)).to_settings()
    keys = {"state.backend.type": "jobmanager", "execution.checkpointing.dir": "file:///c"}
    assert CheckpointConfig(Configuration.from_dict(keys)).to_settings().storage == "jobmanager"


def test_file_storage_objects(config, tmp_path):
    config.set_checkpoint_storage(FileSystemCheckpointStorage(tmp_path, 100, 50))
    storage = config.get_checkpoint_storage()
    assert isinstance(storage, FileSystemCheckpointStorage)
    assert storage.get_checkpoint_path() == str(tmp_path)
    assert FileSystemCheckpointStorage("file://var/checkpoints/").get_checkpoint_path() == "file://var/checkpoints"
    assert FileSystemCheckpointStorage("s3://bucket/").get_checkpoint_path() == "s3://bucket/"
    assert (storage.get_min_file_size_threshold(), storage.get_write_buffer_size()) == (100, 100)
    settings = config.to_settings()
    assert (settings.inline_threshold_bytes, settings.write_buffer_bytes) == (100, 100)


def test_memory_storage_objects(config):
    config.set_checkpoint_storage(JobManagerCheckpointStorage(max_state_size=1000))
    assert config.to_settings().max_state_bytes == 1000
    assert config.get_checkpoint_storage().get_max_state_size() == 1000
    assert JobManagerCheckpointStorage().get_max_state_size() == JobManagerCheckpointStorage.DEFAULT_MAX_STATE_SIZE


def test_one_storage_replaces_another_with_its_directory(tmp_path):
    config = CheckpointConfig(Configuration())
    config.set_checkpoint_storage_dir(tmp_path)
    config.set_checkpoint_storage(JobManagerCheckpointStorage())
    assert config.to_settings().directory is None
    config.set_checkpoint_storage(JobManagerCheckpointStorage(str(tmp_path)))
    assert config.to_settings().directory == str(tmp_path)
    configured_elsewhere = configured(dir=str(tmp_path))
    configured_elsewhere.set_checkpoint_storage(JobManagerCheckpointStorage())
    assert configured_elsewhere.to_settings().directory == str(tmp_path)


def test_storage_arguments_are_checked(config):
    with pytest.raises(ValueError, match="threshold"):
        FileSystemCheckpointStorage("/c", 2 * 1024 * 1024)
    with pytest.raises(ValueError, match="greater than 0"):
        JobManagerCheckpointStorage(max_state_size=0)
    with pytest.raises(ValueError, match="checkpoint directory"):
        FileSystemCheckpointStorage("")
    with pytest.raises(TypeError, match="set_checkpoint_storage_dir"):
        config.set_checkpoint_storage("file:///c")


def test_plain_paths_become_absolute(config, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert config.set_checkpoint_storage_dir("here").to_settings().directory == str(tmp_path / "here")


# ------------------------------------------------------------------------------------------- the environment's


def test_forcing_checkpoints_is_read_back_and_warns_that_it_has_no_effect(config):
    with pytest.warns(ProgramWarning, match="forcing checkpoints has no effect") as warned:
        config.set_force_checkpointing()
    assert warned[0].filename == __file__
    assert config.is_force_checkpointing()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config.set_force_checkpointing(False)
    assert not config.is_force_checkpointing()


def test_enable_checkpointing():
    with pytest.warns(ProgramWarning, match="forcing checkpoints has no effect") as warned:
        env = StreamExecutionEnvironment().enable_checkpointing(100, CheckpointingMode.AT_LEAST_ONCE, force=True)
    assert warned[0].filename == __file__
    config = env.get_checkpoint_config()
    assert env.get_checkpoint_interval() == config.get_checkpoint_interval() == 100
    assert env.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE
    assert config.is_force_checkpointing()
    env.enable_checkpointing(200)
    assert env.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE
    with pytest.raises(ValueError, match="at least 10, got 5"):
        env.enable_checkpointing(5)


def test_configure_and_the_checkpoint_config_see_each_other():
    env = StreamExecutionEnvironment()
    config = env.get_checkpoint_config()
    env.configure(Configuration().set_string("execution.checkpointing.interval", "3 s"))
    assert config.get_checkpoint_interval() == 3000
    assert not env.is_unaligned_checkpoints_enabled()
    config.enable_unaligned_checkpoints().set_force_unaligned_checkpoints()
    assert env.is_unaligned_checkpoints_enabled()
    assert env.is_force_unaligned_checkpoints()
