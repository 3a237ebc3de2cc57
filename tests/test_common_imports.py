import subprocess
import sys


def test_importing_common_imports_nothing_heavy():
    heavy = "{'pyspark', 'pyarrow', 'numpy', 'pandas', 'cloudpickle', 'py4j'}"
    code = f"import sys, tamias.common, tamias.metrics; print({{m.split('.')[0] for m in sys.modules}} & {heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_executors_without_yaml_import_what_functions_use():
    code = "import sys; sys.modules['yaml'] = None; import tamias.common, tamias.datastream, tamias.slot.slot_main"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_name_pyflink_offers_under_common_is_offered():
    import tamias.common

    names = """AssignerWithPeriodicWatermarksWrapper ByteArraySchema CompletableFuture ConfigOption ConfigOptions
        Configuration DeserializationSchema Duration Encoder ExecutionConfig InputDependencyConstraint Instant JobClient
        JobExecutionResult JobID JobStatus RestartStrategies RestartStrategyConfiguration Row RowKind
        SerializationSchema SimpleStringSchema Time TypeInformation TypeSerializer Types WatermarkStrategy"""
    assert set(names.split()) <= set(tamias.common.__all__)
    assert all(hasattr(tamias.common, name) for name in tamias.common.__all__)
