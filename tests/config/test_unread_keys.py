"""Keys that nothing reads are refused in a program, and left out of a file with a line in the log."""

import logging

import pytest

from ekorn.common import Configuration
from ekorn.config.starting_configuration import starting_configuration
from ekorn.config.unread_keys import refuse_unread_keys
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.errors import ConfigurationError


def configured(key):
    configuration = Configuration()
    configuration.set_string(key, "1")
    return configuration


REFUSED = {
    "execution.checkpointing.intervall": "did you mean 'execution.checkpointing.interval'?",
    "ekorn.epoch.target": "did you mean 'ekorn.epoch.target-ms'?",
    "paralelism.default": "did you mean 'parallelism.default'?",
    "state.backend.rocksd.block.blocksize": "did you mean 'state.backend.rocksdb.block.blocksize'?",
    "execution.nonsense": "docs/options.md lists the options",
    "queryable-state.server.ports": "slots answer queries over the connections of the driver",
    "taskmanager.memory.process.size": "set spark.executor.memory",
    "taskmanager.numberOfTaskSlots": "set parallelism.default",
    "high-availability.type": "continued by the next driver",
    "rest.port": "a driver of its own has ekorn.web",
    "jobmanager.rpc.address": "Ekorn runs on Spark and starts no Flink processes",
    "pipeline.jars": "call env.add_jars()",
    "metrics.scope.jm.job": "docs/options.md lists the options",
}


@pytest.mark.parametrize("key", REFUSED)
def test_a_key_that_nothing_reads_is_refused_with_what_to_do(key):
    env = StreamExecutionEnvironment.get_execution_environment(configured(key))
    env.from_collection([1]).map(lambda value: value)
    with pytest.raises(ConfigurationError) as refused:
        env.execute()
    said, why = str(refused.value).split(", because nothing reads it: ")
    assert said == f"the option {key!r} is refused" and REFUSED[key] in why


FAMILIES = {
    "slots answer queries": "server.ports server.query-threads proxy.network-threads client.network-threads",
    "Spark provides the memory": "process.size flink.size managed.size managed.fraction task.heap.size network.min",
    "continued by the next driver": "type storageDir cluster-id zookeeper.quorum jobmanager.port",
    "an option of the service": "port address bind-port bind-address flamegraph.cleanup-interval server.numThreads",
    "docs/checkpoint_storage.md": "access-key secret-key endpoint path.style.access",
}
NAMES = ["queryable-state", "taskmanager.memory", "high-availability", "rest", "s3"]
PREFIXES = dict(zip(FAMILIES, NAMES, strict=True))


@pytest.mark.parametrize("why", FAMILIES)
def test_every_option_of_a_family_without_a_meaning_here_is_refused(why):
    for name in FAMILIES[why].split():
        with pytest.raises(ConfigurationError, match=why):
            refuse_unread_keys(configured(f"{PREFIXES[why]}.{name}"))


@pytest.mark.parametrize(
    "key",
    ["shop.currency", "spark.executor.memory", "state.checkpoints.dir", "execution.savepoint.path", "greeting", "a"],
)
def test_keys_of_the_program_of_spark_and_of_earlier_versions_are_accepted(key):
    refuse_unread_keys(configured(key))


def test_tuning_of_pyflink_is_accepted_with_a_line_in_the_log(caplog):
    with caplog.at_level(logging.WARNING, "ekorn"):
        refuse_unread_keys(configured("python.fn-execution.bundle.size"))
    assert "'python.fn-execution.bundle.size' tunes PyFlink's connection to the JVM" in caplog.text


def test_a_file_of_a_flink_cluster_can_be_used(tmp_path, monkeypatch, caplog):
    (tmp_path / "config.yaml").write_text("parallelism.default: 3\njobmanager:\n  rpc.address: here\nshop.tax: 7\n")
    monkeypatch.setenv("EKORN_CONF_DIR", str(tmp_path))
    with caplog.at_level(logging.WARNING, "ekorn"):
        found = starting_configuration().to_dict()
    assert found == {"parallelism.default": "3", "shop.tax": "7"}
    assert "that nothing reads: jobmanager.rpc.address" in caplog.text
