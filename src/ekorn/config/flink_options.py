"""Options of Flink that Ekorn does not read, and what it does with each: the one table of them.

An option without a meaning here is accepted, and the log names it: no result depends on it. An option is refused if the
job would differ from what it asks for: in its results, in what a failure costs, or in who may see and change what.
`docs/options.md` shows this table, and `tests/compat/flink_options.txt` lists the options that Flink documents.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ACCEPTED", "REFUSED", "OptionRule", "rule_for"]


@dataclass(frozen=True, slots=True)
class OptionRule:
    """What is done with one option, or with a family of options."""

    name: str  # of a family: what its keys start with, up to the dot
    accepted: bool
    why: str  # if accepted, what takes the place of the option; if refused, what to do

    @property
    def is_family(self) -> bool:
        return self.name.endswith(".")


_NO_CLUSTER = "Ekorn runs on Spark and starts no Flink processes."
_RPC = "Processes of Ekorn do not call one another over Pekko (Akka)."
_JVM = "User code runs in Python, and no JVM of Flink loads it."
_PYTHON = "Functions run in the slots, without PyFlink's connection between the JVM and Python."
_DRIVER_MEMORY = "Spark provides the memory: set spark.driver.memory."
_SLOT_MEMORY = "A slot is a Python process; docs/operations.md has the options that bound its memory."
_QUERIES = "Slots answer queries over the connections of the driver, one thread for each client."
_RESOURCES = "Spark provides the processes: set spark.executor.instances and spark.executor.cores."
_SCHEDULER = "Spark schedules the tasks."
_ENVIRONMENT = "Set the environment of Spark's processes: spark.executorEnv.NAME, spark.driver.extraJavaOptions."
_TEMPORARY = "Set spark.local.dir, or the environment variable TMPDIR."
_SERIALIZERS = "Records are pickled, or written by the serializers that the program declares."
_TABLES = "Ekorn has the DataStream API; use Spark for tables and SQL."
_NOT_REPORTED = "Ekorn reports neither traces nor events."
_METRICS = "docs/metrics.md has the metrics and their names."
_STAYS_IN_PROGRAM = "The program runs in the driver, and `execute()` returns when the job has ended."

ACCEPTED = {
    "akka.": _RPC,
    "application-result-store.": _NO_CLUSTER,
    "blob.": _NO_CLUSTER,
    "classloader.": _JVM,
    "cleanup-strategy.": _NO_CLUSTER,
    "client.heartbeat.": _NO_CLUSTER,
    "client.retry-period": _NO_CLUSTER,
    "client.timeout": _NO_CLUSTER,
    "cluster.": _NO_CLUSTER,
    "compiler.": _SCHEDULER,
    "completed-application-store.": _NO_CLUSTER,
    "containerized.": _RESOURCES,
    "env.hadoop.conf.dir": _ENVIRONMENT,
    "env.hbase.conf.dir": _ENVIRONMENT,
    "env.java.": _ENVIRONMENT,
    "env.log.": _ENVIRONMENT,
    "env.pid.dir": _ENVIRONMENT,
    "env.ssh.opts": _ENVIRONMENT,
    "env.stdout-err.": _ENVIRONMENT,
    "env.yarn.conf.dir": _ENVIRONMENT,
    "events.reporter.": _NOT_REPORTED,
    "events.reporters": _NOT_REPORTED,
    "execution.attached": _STAYS_IN_PROGRAM,
    "execution.batch-shuffle-mode": "Spark's shuffle carries the records.",
    "execution.batch.": _SCHEDULER,
    "execution.shutdown-on-application-finish": _STAYS_IN_PROGRAM,
    "execution.shutdown-on-attached-exit": _STAYS_IN_PROGRAM,
    "execution.sort-keyed-partition.memory": "Set ekorn.batch.records-in-memory.",
    "execution.sort-partition.memory": "Set ekorn.batch.records-in-memory.",
    "execution.submit-failed-job-on-application-error": _STAYS_IN_PROGRAM,
    "execution.terminate-application-on-any-job-terminated-exceptionally": _STAYS_IN_PROGRAM,
    "external-resource.": "Spark provides resources such as GPUs: set spark.executor.resource.*.",
    "external-resources": "Spark provides resources such as GPUs: set spark.executor.resource.*.",
    "flink.yarn.": "Set spark.hadoop.yarn.*.",
    "heartbeat.rpc-failure-threshold": "heartbeat.timeout decides when a slot is lost.",
    "historyserver.": "Finished jobs are kept by the service (`ekorn service start`).",
    "io.tmp.dirs": _TEMPORARY,
    "jmx.": _JVM,
    "job-event.": _NO_CLUSTER,
    "job-result-store.": _NO_CLUSTER,
    "jobmanager.": _NO_CLUSTER,
    "jobmanager.adaptive-scheduler.": "The options of reactive mode and the autoscaler are in docs/options.md.",
    "jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout": _SCHEDULER,
    "jobmanager.heap.": _DRIVER_MEMORY,
    "jobmanager.memory.": _DRIVER_MEMORY,
    "jobstore.": _NO_CLUSTER,
    "kubernetes.": "Spark starts the pods: set spark.kubernetes.*.",
    "materialized-table.": _TABLES,
    "mdc.": "Names and levels of log records are set with Python's `logging`.",
    "mesos.": _RESOURCES,
    "metrics.fetcher.": _METRICS,
    "metrics.internal.": _METRICS,
    "metrics.job.status.enable": _METRICS,
    "metrics.scope.": _METRICS,
    "metrics.system-resource": _METRICS,
    "metrics.system-resource-probing-interval": _METRICS,
    "minicluster.": _NO_CLUSTER,
    "pekko.": _RPC,
    "pipeline.cep.": "Ekorn has no CEP library.",
    "pipeline.default-kryo-serializers": _SERIALIZERS,
    "pipeline.force-kryo-avro": _SERIALIZERS,
    "pipeline.registered-kryo-types": _SERIALIZERS,
    "pipeline.registered-pojo-types": _SERIALIZERS,
    "pipeline.serialization-config": _SERIALIZERS,
    "pipeline.vertex-description-mode": "Vertices are described as docs/dashboard.md shows them.",
    "pipeline.vertex-name-include-index-prefix": "Vertices are described as docs/dashboard.md shows them.",
    "pipeline.watermark-alignment.": "Splits of one source are aligned as its watermark strategy says.",
    "plugin.classloader.": _JVM,
    "process.jobmanager.": _TEMPORARY,
    "process.taskmanager.": _TEMPORARY,
    "process.working-dir": _TEMPORARY,
    "python.client.executable": "The interpreter that runs the program is the driver's.",
    "python.execution-mode": _PYTHON,
    "python.fn-execution.": _PYTHON,
    "python.logging.": "Levels of log records are set with Python's `logging`.",
    "python.map-state.": _PYTHON,
    "python.metric.": "Metrics are always on.",
    "python.operator-chaining.enabled": "Set pipeline.operator-chaining.enabled.",
    "python.profile.": "The dashboard shows flame graphs of the operators.",
    "python.state.": _PYTHON,
    "python.systemenv.enabled": "Slots have the environment that Spark gives them.",
    "query.client.": _QUERIES,
    "query.proxy.": _QUERIES,
    "query.server.": _QUERIES,
    "queryable-state.": _QUERIES,
    "resourcemanager.": _RESOURCES,
    "rest.": "It is an option of the service (`ekorn service start`); for the web server of a driver, set ekorn.web.",
    "shuffle-service-factory.": "Spark's shuffle carries the records.",
    "sink.committer.retries": "A commit that fails is repeated after the restart of the job.",
    "slot.idle.": "The parallelism decides how many slots run: set parallelism.default.",
    "slot.request.": "The parallelism decides how many slots run: set parallelism.default.",
    "slotmanager.": "The parallelism decides how many slots run: set parallelism.default.",
    "slow-task-detector.": _SCHEDULER,
    "sql-client.": _TABLES,
    "sql-gateway.": _TABLES,
    "table.": _TABLES,
    "task.cancellation.timers.timeout": "Slots of a cancelled job are ended.",
    "taskmanager.": _NO_CLUSTER,
    "taskmanager.heap.": _SLOT_MEMORY,
    "taskmanager.memory.": _SLOT_MEMORY,
    "taskmanager.network.": "Spark's shuffle carries the records.",
    "traces.": _NOT_REPORTED,
    "user.artifacts.": "Set python.files and spark.jars.",
    "web.": "It is an option of Flink's dashboard; docs/dashboard.md says what Ekorn's has.",
    "yarn.": "Spark asks YARN for containers: set spark.yarn.*.",
}
"""Options that are accepted, each with what takes its place."""

_CHECKPOINTS = "it would change how the job is checkpointed or restored; docs/options.md lists what can be set"
_HIGH_AVAILABILITY = (
    "it is an option of the service (`ekorn service start`); without a service, the next driver with the same job id "
    "continues a job that has a checkpoint directory"
)
_LISTENERS = "Ekorn has no job listeners: look at the job that execute_async() returns, or at the REST API"
_READ_ONLY = "set ekorn.web.read-only to refuse requests that change something"
_SECURITY = "a job that runs without it would be less safe than it asks for; docs/guides/security.md says what to set"
_STORES = "credentials and addresses of a store are set as docs/checkpoint_storage.md says"

REFUSED = {
    "akka.ssl.": _SECURITY,
    "blob.service.ssl.": _SECURITY,
    "execution.checkpointing.": _CHECKPOINTS,
    "execution.checkpointing.during-recovery.": _CHECKPOINTS,
    "execution.checkpointing.file-merging.": _CHECKPOINTS,
    "execution.checkpointing.sync-phase-timeout": _CHECKPOINTS,
    "execution.checkpointing.unaligned.interruptible-timers.": _CHECKPOINTS,
    "execution.checkpointing.unaligned.recover-output-on-downstream.": _CHECKPOINTS,
    "execution.job-listeners": _LISTENERS,
    "execution.job-status-changed-listeners": _LISTENERS,
    "execution.program-config.": "the program's own settings always count; remove the ones that must not",
    "execution.state-recovery.": _CHECKPOINTS,
    "execution.target": "set spark.master, or give it with `ekorn run -t MASTER`",
    "flink.hadoop.": _STORES,
    "fs.": _STORES,
    "fs.default-scheme": "write the scheme before each path, such as s3://",
    "fs.output.always-create-directory": "sinks create the directories that they need",
    "fs.overwrite-files": "the call that writes a file says whether it overwrites one",
    "high-availability": _HIGH_AVAILABILITY,
    "high-availability.": _HIGH_AVAILABILITY,
    "historyserver.web.ssl.": _SECURITY,
    "pekko.ssl.": _SECURITY,
    "pipeline.classpaths": "call env.add_classpaths(), or set spark.driver.extraClassPath",
    "pipeline.jars": "call env.add_jars(), or set spark.jars",
    "pipeline.jobvertex-parallelism-overrides": "call set_parallelism() on the operators",
    "pipeline.sources.pause-until-first-checkpoint": _CHECKPOINTS,
    "python.pythonpath": "call env.add_python_file(), or set python.files",
    "s3.": _STORES,
    "s3a.": _STORES,
    "security.": _SECURITY,
    "state.backend.forst.": "there are the state backends 'hashmap' and 'rocksdb'",
    "state.changelog.": _CHECKPOINTS,
    "state.size-track.": "look at the size of state on the dashboard",
    "taskmanager.data.ssl.": _SECURITY,
    "web.cancel.enable": _READ_ONLY,
    "web.rescale.enable": _READ_ONLY,
    "web.submit.enable": _READ_ONLY,
    "yarn.modify.acls": _SECURITY,
    "yarn.security.": _SECURITY,
    "yarn.view.acls": _SECURITY,
    "zookeeper.": _SECURITY,
}
"""Options that are refused, each with what to do."""

_RULES = {
    name: OptionRule(name, accepted=accepted, why=why)
    for accepted, table in ((True, ACCEPTED), (False, REFUSED))
    for name, why in table.items()
}


def rule_for(key: str) -> OptionRule | None:
    """Return what is done with a key that nothing reads: the rule with the longest name that fits, or None."""
    exact = _RULES.get(key)
    if exact is not None:
        return exact
    fitting = [rule for rule in _RULES.values() if rule.is_family and key.startswith(rule.name)]
    return max(fitting, key=lambda rule: len(rule.name), default=None)
