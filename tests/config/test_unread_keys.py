"""Keys that nothing reads: misspelt ones are refused, those of Flink go by a table, and files leave them out."""

import logging
from pathlib import Path

import pytest

from ekorn.common import Configuration
from ekorn.config.flink_options import ACCEPTED, rule_for
from ekorn.config.flink_options import REFUSED as REFUSED_OPTIONS
from ekorn.config.options.listing import all_options
from ekorn.config.options.rocksdb import rocksdb_options
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
    "rest.flamegraph.enable": "did you mean 'rest.flamegraph.enabled'?",
    "execution.nonsense": "docs/options.md lists the options",
    "execution.checkpointing.file-merging.enabled": "how the job is checkpointed",
    "high-availability": "the next driver with the same job id",
    "high-availability.type": "the next driver with the same job id",
    "fs.overwrite-files": "the call that writes a file says",
    "pipeline.jars": "call env.add_jars()",
    "pipeline.jobvertex-parallelism-overrides": "call set_parallelism()",
    "security.kerberos.login.keytab": "docs/guides/security.md",
    "taskmanager.data.ssl.enabled": "docs/guides/security.md",
    "web.cancel.enable": "set ekorn.web.read-only",
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
    "execution.checkpointing.file-merging": "enabled max-file-size",
    "high-availability": "type storageDir cluster-id zookeeper.quorum jobmanager.port",
    "s3": "access-key secret-key endpoint path.style.access",
    "security": "ssl.internal.enabled ssl.rest.keystore kerberos.login.principal redaction.additional-keys",
    "state.backend.forst": "memory.managed timer-service.factory",
}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_option_of_a_family_that_would_change_the_job_is_refused(family):
    for name in FAMILIES[family].split():
        with pytest.raises(ConfigurationError, match="is refused, because nothing reads it"):
            refuse_unread_keys(configured(f"{family}.{name}"))


def published_options():
    lines = (Path(__file__).parents[1] / "compat" / "flink_options.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def test_what_is_done_with_each_option_that_flink_documents_is_decided():
    read = {option.key for option in all_options()} | {option.key for option in rocksdb_options()}
    unread = [key for key in published_options() if key not in read]
    unread = [key for key in unread if not key.startswith(("metrics.reporter.", "state.backend.rocksdb."))]
    assert len(unread) > 700
    assert [key for key in unread if rule_for(key) is None] == []


def test_no_option_that_flink_documents_is_taken_for_a_misspelt_one():
    said = []
    for key in published_options():
        try:
            refuse_unread_keys(configured(key))
        except ConfigurationError as refused:
            said.append(str(refused))
    assert len(said) > 100
    assert [each for each in said if "did you mean" in each] == []


def test_no_rule_stands_for_an_option_that_is_read():
    read = {key for option in all_options() for key in (option.key, *option.old_keys)}
    assert sorted(read & (ACCEPTED.keys() | REFUSED_OPTIONS.keys())) == []
    assert sorted(ACCEPTED.keys() & REFUSED_OPTIONS.keys()) == []


@pytest.mark.parametrize(
    "key",
    ["shop.currency", "spark.executor.memory", "state.checkpoints.dir", "execution.savepoint.path", "greeting", "a"],
)
def test_keys_of_the_program_of_spark_and_of_earlier_versions_are_accepted(key):
    refuse_unread_keys(configured(key))


# Options that PyFlink's own tests set, and those that a Flink cluster's deployment has.
WITHOUT_EFFECT = [
    "akka.ask.timeout",
    "classloader.check-leaked-classloader",
    "jobmanager.memory.process.size",
    "jobmanager.rpc.address",
    "metrics.scope.jm-job",
    "pekko.ask.timeout",
    "python.execution-mode",
    "python.fn-execution.bundle.size",
    "python.logging.default.level",
    "rest.port",
    "taskmanager.host",
    "taskmanager.memory.managed.consumer-weights",
    "taskmanager.memory.segment-size",
]


def test_options_of_flink_without_a_meaning_here_are_accepted_with_one_line_in_the_log(caplog):
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration.from_dict(dict.fromkeys(WITHOUT_EFFECT[:6], "1"))
    )
    env.configure(Configuration.from_dict(dict.fromkeys([*WITHOUT_EFFECT[6:], "shop.currency"], "1")))
    with caplog.at_level(logging.INFO, "ekorn.config"):
        env.job_settings("any")
    assert [record.getMessage() for record in caplog.records] == [
        f"options of Flink that have no effect here: {', '.join(WITHOUT_EFFECT)}; "
        "docs/options.md says what takes their place"
    ]


def test_nothing_is_logged_of_options_that_are_read(caplog):
    with caplog.at_level(logging.INFO, "ekorn.config"):
        refuse_unread_keys(configured("rest.flamegraph.enabled"))
        refuse_unread_keys(configured("taskmanager.state.local.root-dirs"))
        refuse_unread_keys(configured("shop.currency"))
    assert caplog.records == []


def test_a_file_of_a_flink_cluster_can_be_used(tmp_path, monkeypatch, caplog):
    (tmp_path / "config.yaml").write_text(
        "parallelism.default: 3\njobmanager:\n  rpc.address: here\nshop.tax: 7\nexecution.nonsense: 1\n"
    )
    monkeypatch.setenv("EKORN_CONF_DIR", str(tmp_path))
    with caplog.at_level(logging.WARNING, "ekorn"):
        found = starting_configuration().to_dict()
    assert found == {"parallelism.default": "3", "shop.tax": "7"}
    assert "that nothing reads: execution.nonsense, jobmanager.rpc.address" in caplog.text
