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
    },
    "the process's own settings, which the test puts back": {
        "cli/test_cli.py": ["set sys.argv", "set sys.path"],
        "driver/test_collect.py": ["set tempfile.tempdir", "set tempfile.tempdir", "set tempfile.tempdir"],
        "driver/test_rescaling.py": ["set tempfile.tempdir"],
        "engine/test_registering_pool.py": ["set tempfile.tempdir", "set tempfile.tempdir"],
        "program/test_shown_errors.py": ["set sys.excepthook", "set sys.excepthook"],
        "pyflink/conftest.py": ["set sys.argv", "set sys.path", "set logging.getLogger('py4j').level"],
        "pyflink/test_alias.py": ["set ekorn.common.__path__"],
        "rest/test_job_socket.py": ["set tempfile.tempdir"],
        "spark/test_jobs.py": ["set tempfile.tempdir"],
        "state_processor/test_command_mistakes.py": ["set sys.stdout"],
        "state_processor/test_spooled_entries.py": ["set tempfile.tempdir", "set tempfile.tempdir"],
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
    },
    "a program reads in its own process what the metrics of its job are by REST": {
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
        "state/test_ttl_snapshots.py": ["self.last._data"],
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
