import subprocess
import sys


def test_importing_common_imports_nothing_heavy():
    heavy = "{'pyspark', 'pyarrow', 'numpy', 'pandas', 'cloudpickle', 'py4j'}"
    code = f"import sys, ekorn.common, ekorn.metrics; print({{m.split('.')[0] for m in sys.modules}} & {heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_executors_without_yaml_import_what_functions_use():
    code = "import sys; sys.modules['yaml'] = None; import ekorn.common, ekorn.datastream, ekorn.slot.slot_main"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_name_pyflink_offers_under_common_is_offered():
    import ekorn.common

    names = """AssignerWithPeriodicWatermarksWrapper ByteArraySchema CompletableFuture ConfigOption ConfigOptions
        Configuration DeserializationSchema Duration Encoder ExecutionConfig InputDependencyConstraint Instant JobClient
        JobExecutionResult JobID JobStatus RestartStrategies RestartStrategyConfiguration Row RowKind
        SerializationSchema SimpleStringSchema Time TypeInformation TypeSerializer Types WatermarkStrategy"""
    assert set(names.split()) <= set(ekorn.common.__all__)
    assert all(hasattr(ekorn.common, name) for name in ekorn.common.__all__)


def test_names_that_pyflink_installs_for_older_programs_are_offered():
    """PyFlink sets them without listing them: the formats of rows in common, connectors in their package."""
    import ekorn.common
    import ekorn.datastream.connectors

    schemas = {
        f"{name}Row{way}Schema" for name in ("Avro", "Csv", "Json") for way in ("Serialization", "Deserialization")
    }
    assert schemas <= set(ekorn.common.__all__)
    names = """BucketAssigner FileEnumeratorProvider FileSink FileSource FileSourceBuilder FileSplitAssignerProvider
        FlinkKafkaConsumer FlinkKafkaProducer JdbcConnectionOptions JdbcExecutionOptions JdbcSink
        KafkaRecordDeserializationSchema KafkaSource NumberSequenceSource OutputFileConfig RollingPolicy Semantic
        StreamFormat StreamingFileSink"""
    assert set(names.split()) <= set(ekorn.datastream.connectors.__all__)
