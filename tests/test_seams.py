"""Tests use public seams: every private attribute that a test reads, and every patch, is listed here with its reason.

An attribute that the test file itself defines is the test's own. A new entry needs a reason that no constructor
argument, option, fault point or public attribute could replace.
"""

import ast
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parent
NOT_OURS = ("recorded/programs", "pyflink/scripts", "golden/programs")  # recorded programs and others' scripts

REASONS = {
    "a name that its library documents although it begins with an underscore": {
        "campaign/test_hard_records.py": ["os._exit"],
        "campaign/zygote.py": ["os._exit"],
        "mutation/trial.py": ["os._exit"],
        "program/test_reprs.py": ["shown._repr_html_"],
        "program/test_shown_errors.py": ["raised.value._render_traceback_"],
        "reliability/test_load.py": ["os._exit"],
        "spark/test_private_files.py": ["os._exit"],
        "state/test_evolution.py": ["found._fields"],
        "types/test_rows.py": ["row._fields", "Row(_id=5)._id", "Row(_id=5)._other"],
    },
    "Spark has no public name for it": {
        "batch/spark/test_shuffle_metrics.py": ["context._jsc", "context._jvm"],
        "spark/test_jobs.py": ["SparkContext._active_spark_context"],
    },
    "the machine: a disk, a process or an interpreter that does what no test can make it do": {
        "batch/test_restarts.py": ["set SystemClock.now_ms"],
        "checkpoint/test_ownership.py": ["set os.kill"],
        "connectors/test_file_sink.py": ["set os.fsync", "set fcntl.flock"],
        "engine/test_local_pool.py": ["set local_pool.ChildSlotProcess", "set local_pool.SlotHandle"],
        "engine/test_registering_pool.py": ["set ekorn.engine.spark.task_side.launch_slots.subprocess.Popen"],
        "slot/test_cached_files.py": ["set os.rename"],
        "testing/test_kafka_jars.py": ["set ekorn.testing.kafka.jars.sleep", "set urllib.request.urlopen"],
        "storage/power_loss.py": ["set os.fsync"],
        "storage/test_durable.py": ["set os.link"],
        "storage/test_files.py": ["set os.fsync", "set os.link"],
        "storage/test_write_buffer.py": ["set durable.open"],
        "web/test_gate.py": ["set tempfile.mkstemp", "set ekorn.web.http_server.open"],
    },
    "the process's own settings, which the test puts back": {
        "cli/test_cli.py": ["set sys.argv", "set sys.path"],
        "driver/test_collect.py": ["set tempfile.tempdir", "set tempfile.tempdir", "set tempfile.tempdir"],
        "driver/test_rescaling.py": ["set tempfile.tempdir"],
        "engine/test_registering_pool.py": ["set tempfile.tempdir", "set tempfile.tempdir"],
        "program/test_shown_errors.py": ["set sys.excepthook", "set sys.excepthook"],
        "queryable/test_wire.py": ["set threading.excepthook"],
        "pyflink/conftest.py": ["set sys.argv", "set sys.path", "set logging.getLogger('py4j').level"],
        "pyflink/test_alias.py": ["set ekorn.common.__path__"],
        "rest/test_job_socket.py": ["set tempfile.tempdir"],
        "spark/test_jobs.py": ["set tempfile.tempdir"],
        "state_processor/test_command_mistakes.py": ["set sys.stdout"],
        "state_processor/test_spooled_entries.py": ["set tempfile.tempdir", "set tempfile.tempdir"],
        "web/test_gate.py": ["set tempfile.tempdir"],
    },
    "PyFlink's own tests run as they are, and ask for it": {
        "pyflink/own_tests/stand_ins.py": ["StreamExecutionEnvironment._j_stream_execution_environment"],
    },
    "recorded programs run as they are: what disturbs them is put under them": {
        "conformance/conftest.py": ["set outcome._failure"],
        "conformance/recorded_runs.py": ["outcome._failure"],
        "conformance/test_recorded_with_crashes.py": [
            "set CollectionSource.create_reader",
            "set StreamExecutionEnvironment.from_collection",
            "set WatermarkStrategy.for_monotonous_timestamps",
        ],
        "spark/recorded_programs.py": ["outcome._failure"],
    },
    "an instant between two statements, at which another thread or process acts": {
        "connectors/test_file_sink.py": ["set part_files.hold", "set part_files.remove_quietly"],
        "driver/test_damage_found_by_slots.py": ["set ScriptedEngine.deploy"],
        "engine/test_continuous_engine.py": ["set continuous_process_engine.connect"],
        "driver/test_regions_continuously.py": ["set ContinuousScriptedEngine.run_others", "engine._clock"],
        "queryable/test_state_future.py": ["future._finished", "future._finished", "future._finished._waiters"],
        "service/test_job_process.py": ["set subprocess.Popen.poll"],
        "spark/continuous_jobs.py": ["client._handle"],
        "spark/test_jobs.py": ["SparkLevels._tasks", "set SparkLevels._tasks"],
        "state/test_rocksdb_merging.py": ["set job.rocks.store.compact", "set job.rocks.store.compact"],
    },
    "a whole job runs with a constant of the house made small, so that its seams fall everywhere": {
        "connectors/test_file_sink.py": ["set part_files._BUFFER_BYTES"],
        "connectors/test_file_sink_power_loss.py": ["set part_files._BUFFER_BYTES"],
        "connectors/test_sources.py": ["set ekorn.connectors.files.file_bytes.PIECE_BYTES"],
        "operators/windows/sliced_programs.py": ["set layout_choice.slices_pay", "set layout_choice.slices_pay"],
        "state/test_backends_machine.py": ["set rocksdb_lists._PIECE", "set rocksdb_maps._EAGER"],
        "columns/test_value_vectors.py": ["set Shared.in_slot"],
        "state/test_rocksdb_files.py": ["set Shared.in_slot"],
        "state/test_rocksdb_memory.py": ["set Shared.in_slot", "set Shared.in_slot", "set Shared.in_slot"],
    },
    "a slot on a machine of its own, in a job that runs in one process": {
        "connectors/test_sources.py": ["set file_source.list_files"],
        "driver/test_savepoints.py": ["set snapshot_writer.open_files"],
        "slot/test_cached_files.py": [
            "set ekorn.engine.slots.slot_deployments.send_files",
            "set ekorn.engine.slots.slot_deployments.send_files",
            "set ekorn.engine.slots.slot_deployments.send_files",
        ],
    },
    "the choice of an engine is tested without the Spark that the engine needs": {
        "engine/test_execution.py": ["set engine_choice.start_with_slots", "set engine_choice.epoch_engine"],
        "engine/test_more_task_slots.py": [
            "set engine_choice.start_with_slots",
            "set task_slots.is_sized_by_us",
            "set task_slots.is_sized_by_us",
            "set task_slots.add_task_slots",
        ],
    },
    "a program reads in its own process what the metrics of its job are by REST": {
        "driver/test_failed_resumes.py": ["job._handle"],
        "spark/slow_sink.py": ["client._handle"],
    },
    "the process of the test must not end": {
        "engine/test_transport_tasks.py": ["set os._exit"],
    },
    "Spark's part is played, and a batch is held until the job has ended": {
        "engine/test_spark_source_input.py": [
            "set Session.cancelJobGroup",
            "set Frame.parquet",
            "program.part._run",
        ],
    },
    "calls are counted": {
        "conformance/test_graph_shapes.py": ["set SlotHost.run"],
        "queryable/test_client.py": [
            "calls._batches._changed",
            "calls._batches._changed",
            "calls._batches._waits_for",
            "calls._batches._waits_for",
        ],
        "slot/test_host.py": ["set host.subtasks[subtask].checkpoint_aborted"],
        "web/test_gate.py": ["set ekorn.web.gate.hmac.compare_digest"],
    },
    "what must not be left in memory is held privately": {
        "driver/test_query_answers.py": ["self.answers._thread"],
        "operators/test_timers.py": ["table._heap"],
        "operators/windows/test_sliced_windows.py": [
            "table._firing_keys",
            "table._unfired",
            "table._disordered",
            "operator.layout.ends._known",
        ],
        "slot/test_local_copies.py": ["local._of_checkpoint"],
        "state/test_rocksdb_timers.py": ["timers._by_time", "timers._added", "timers._removed", "timers._removed"],
        "state/test_ttl_snapshots.py": ["self.last._data"],
    },
    "which of two parsers reads a line shows in no row": {
        "columns/test_file_sources.py": ["set CsvFields.read"],
    },
    "keys whose hashes are equal cannot be found by chance": {
        "columns/test_key_index.py": ["set ekorn.columns.key_words.mixed_words"],
    },
    "what a client of Kafka reports, and when, is the client's": {
        "connectors/kafka/with_broker/test_outage.py": ["set ClientErrors.report"],
    },
    "a guard of one unit: through its public way it is met only with other processes, threads, sockets or clocks": {
        "engine/test_master_check.py": [
            "master_check._PATIENCE_S",
            "set master_check._PATIENCE_S",
            "set master_check._PATIENCE_S",
            "set master_check.time",
            "set master_check.time",
        ],
        "engine/test_streaming_input.py": ["set streaming_input.cancel_quietly"],
        "links/test_connections.py": [
            "acceptor.newcomers._waiting",
            "link._socket",
            "link._socket",
            "link._socket",
            "link._socket._socket",
            "links._SILENCE",
            "links._remaining",
            "links._remaining",
            "newcomers._waiting",
            "newcomers._waiting",
            "newcomers._waiting",
            "set ekorn.links.link.socket.socket",
            "set links._connect_once",
            "set links.time",
            "set links.time",
        ],
        "links/test_listener.py": ["acceptor.newcomers._waiting", "set ekorn.links.listener.threading.Thread"],
        "links/test_pipelined_link.py": ["link._unanswered", "set ekorn.links.pipelined_link.time"],
        "queryable/test_batches.py": [
            "QueryableStateClient(host, 7, 't', **more)._address",
            "batches._answered",
            "batches._answered",
            "batches._changed",
            "batches._closed",
            "batches._gathers",
            "batches._next_batch",
            "batches._next_batch",
            "batches._next_batch",
            "batches._next_batch",
            "batches._next_batch",
            "batches._next_batch",
            "batches._pause_s",
            "batches._pause_s",
            "batches._pause_s",
            "batches._pause_s",
            "batches._pause_s",
            "batches._pause_s",
            "batches._pause_s",
            "batches._pause_s",
            "batches._pause_s",
            "batches._send",
            "batches._sent_at_s",
            "batches._unanswered",
            "batches._unanswered",
            "batches._unanswered",
            "batches._unanswered",
            "batches._unanswered",
            "batches._unanswered",
            "batches._waits_for",
            "batches._waits_for",
            "batches._waits_for",
            "batches._waits_for",
            "batches._waits_for",
            "batches._waits_for",
            "batches._waits_for",
            "client._batches",
            "client._target",
            "client._target",
            "client._target",
            "client._target",
            "each._waiters",
            "made._thread",
            "made._thread",
            "set client._batches.ask",
        ],
        "queryable/test_bounds.py": ["server._jobs", "server_of(*jobs)._begin"],
        "rest/test_archive.py": ["VITALS._replace", "set archive.rescale_ids"],
        "rest/test_changing_routes.py": ["set changing_api.dispose_savepoint"],
        "rest/test_driver_web.py": [
            "job_socket._LAST_ANSWERS_S",
            "job_socket._finish_conversations",
            "set job_socket._servers",
            "set job_socket.time",
        ],
        "rest/test_flame_graphs.py": [
            "slots.graphs._jobs",
            "slots.graphs._jobs",
            "slots.graphs._jobs",
            "slots.graphs._jobs",
            "slots.graphs._jobs",
        ],
        "rest/test_openapi.py": ["set ekorn.rest.openapi._PLAIN"],
        "rest/test_process_answers.py": [
            "process_answers._ELSEWHERE",
            "process_answers._ELSEWHERE",
            "process_answers._is_file",
            "process_answers._process_here",
            "process_answers._process_here",
            "process_answers._process_here",
            "process_answers._process_metrics",
            "set process_answers._process_metrics",
            "set process_answers.is_slot_here",
        ],
        "rest/test_vertex_answers.py": ["set vertex_answers._aggregated"],
        "service/test_cluster_node.py": [
            "a.node._led",
            "a.node._meet",
            "a.node._meet",
            "a.node._meet",
            "a.node._meet",
            "a.node._step_down",
            "a.node._step_down",
            "a.node._thread",
            "b.node._step_down",
            "node._renew",
            "self.node._look",
            "service.node._meet",
            "set ClusterNode._renew",
            "set module.elapsed_s",
        ],
        "service/test_driver_poller.py": ["set driver_poller.driver_client", "set driver_poller.time"],
        "service/test_job_files.py": [
            "set bundles._MOST_FILES",
            "set bundles._MOST_FILES",
            "set ekorn.service.jobs.job_store.os.replace",
            "set service_folder._TRY_AGAIN_S",
            "set service_folder.time",
            "set zipfile.ZipFile.infolist",
        ],
        "service/test_job_loop.py": [
            "self.service._forget_old",
            "self.service._note_ends",
            "self.service._start_waiting",
            "service.service._closed",
            "service.service._jobs",
            "service.service._jobs",
            "service.service._note_ends",
            "service.service._note_ends",
            "service.service._note_ends",
            "service.service._note_ends",
            "service.service._note_ends",
            "service.service._note_ends",
            "service.service._note_ends",
            "service.service._note_ends",
            "service.service._note_ends",
            "service.service._socket_of",
            "service.service._start_waiting",
            "service.service._trials",
            "service.service._trials",
            "service.service._wake",
            "service.service._watch",
            "set job_service._LONGEST_SOCKET",
            "set job_service._LOOK_S",
            "set job_service._MOST_WAITING",
            "set job_service.end_process",
            "set job_service.found_driver",
            "set job_service.is_alive",
            "set job_service.start_driver",
            "set self.store.unpack_program",
            "set service.service._note_ends",
            "set service.service._trials.verdict",
            "set service.service._trials.verdict",
            "set service.service.overviews.of",
            "set service.service.overviews.of",
        ],
        "service/test_leader_watch.py": [
            "set ekorn.service.cluster.leader_watch.RENEWALS_PER_LEASE",
            "set ekorn.service.cluster.leader_watch.elapsed_s",
        ],
        "service/test_overview_answers.py": [
            "savepoint_api._is_there",
            "savepoint_api._is_there",
            "savepoint_api._is_there",
            "set overview_api.WebClient",
            "set overviews._polled",
            "set savepoint_api.driver_client",
        ],
        "service/test_plan_changes.py": [
            "set plan_changes.RemoteJob",
            "set plan_changes._LOOK_S",
            "set plan_changes.driver_client",
        ],
        "service/test_plan_trial.py": ["set plan_trial.RemoteJob", "set plan_trial.driver_client"],
        "service/test_remote_job.py": ["remote_job._POLL_S"],
        "slot/test_garbage.py": [
            "garbage._resident_bytes",
            "garbage._resident_bytes",
            "set garbage._INTERVAL_S",
            "set garbage._resident_bytes",
            "set garbage._resident_bytes",
            "set garbage.gc",
            "set garbage.open",
            "set slot_garbage.gc",
        ],
        "slot/test_mailbox.py": [
            "mailbox._runners",
            "mailbox._runners",
            "server._mailbox",
            "server._mailbox",
            "server._mailbox._runners",
        ],
        "slot/test_process.py": [
            "process._SWITCH_S",
            "process._SWITCH_S",
            "process._remove_if_empty",
            "process._remove_if_empty",
            "process._remove_if_empty",
            "process._switch_often",
            "process._watch_executor",
            "process._watch_executor",
            "process._watch_executor",
            "set process.os",
            "set process.os",
        ],
        "slot/test_recent_log.py": ["set log.handleError"],
        "slot/test_server.py": ["server._mailbox", "server._runner"],
        "slot/test_slot_memory.py": [
            "set memory_watch._REPORT_S",
            "set memory_watch.collect",
            "set memory_watch.resident_bytes",
        ],
        "slot/test_user_code_lock.py": ["lock._visits"],
        "storage/test_remote_files.py": ["set access.open"],
        "web/test_files.py": ["set ekorn.web.http_server.os.fstat", "set tempfile.tempdir"],
        "web/test_patience.py": ["set http_client.time"],
        "web/test_serving.py": [
            "http_client._is_on_this_machine",
            "http_client._is_on_this_machine",
            "http_client._is_on_this_machine",
            "serving.server._tls",
            "serving.server._tls",
            "set ekorn.web.serving.is_loopback",
            "set ekorn.web.serving.tcp_socket",
            "set ekorn.web.token_file.os.link",
            "set http_client.is_loopback",
        ],
    },
}


def test_every_private_attribute_and_every_patch_has_a_reason():
    listed = Counter((file, what) for files in REASONS.values() for file, found in files.items() for what in found)
    found = Counter((str(path.relative_to(TESTS)), what) for path in files_of_tests() for what in reached(path))
    new = [f"{file}: {what}" for file, what in (found - listed).elements()]
    gone = [f"{file}: {what}" for file, what in (listed - found).elements()]
    assert not new, "use a public seam, or list with a reason:\n" + "\n".join(new)
    assert not gone, "no longer there, remove from the list:\n" + "\n".join(gone)


def test_private_attributes_and_patches_are_found(tmp_path):
    path = tmp_path / "test_it.py"
    path.write_text(
        "class Own:\n    _mine = 1\n    def __init__(self):\n        self._own = self._mine\n"
        "def test(monkeypatch, backend):\n"
        "    assert Own()._own and backend._heap and backend.__doc__\n"
        "    monkeypatch.setattr(backend, 'limit', 1)\n"
        "    monkeypatch.setattr('ekorn.links.link.LIMIT', 1)\n"
        "    with mock.patch.object(backend, 'pays', None): pass\n"
        "    monkeypatch.setenv('A', 'b')\n"
    )
    assert sorted(reached(path)) == [
        "backend._heap",
        "set backend.limit",
        "set backend.pays",
        "set ekorn.links.link.LIMIT",
    ]


def files_of_tests():
    files = (path for path in sorted(TESTS.rglob("*.py")))
    return [path for path in files if not str(path.relative_to(TESTS)).startswith(NOT_OURS)]


def reached(path):
    """Yield what a test file reads of another module's private attributes, and what it patches."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    own = set(_names_defined_in(tree))
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                pass
            case ast.Attribute(attr=name) if name.startswith("_") and not name.startswith("__") and name not in own:
                yield ast.unparse(node)
            case ast.Call(func=ast.Attribute(attr="setattr"), args=[ast.Constant(value=name), *_]):
                yield f"set {name!s}"
            case ast.Call(func=ast.Attribute(attr="setattr" | "object"), args=[patched, ast.Constant(value=name), *_]):
                yield f"set {ast.unparse(patched)}.{name!s}"


def _names_defined_in(tree):
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
