"""Spellings of Flink 1.x, for programs that were written for it. New programs need nothing from here.

| here | instead, today |
|---|---|
| `selection`, `split_stream`: `split`, `select`, `OutputSelector` | side outputs of a `ProcessFunction` |
| `timestamp_extractors`: assigners that also emit watermarks | `WatermarkStrategy` |
| `time_characteristic`: one notion of time for a whole job | assigners of windows, watermark strategies |
| `state_backends`: `MemoryStateBackend`, `FsStateBackend`, `RocksDBStateBackend` | `HashMapStateBackend`, \
`EmbeddedRocksDBStateBackend`, and a checkpoint storage |
| `kafka`: `FlinkKafkaConsumer`, `FlinkKafkaProducer` | `KafkaSource`, `KafkaSink` |
| `streaming_file_sink`: `StreamingFileSink` | `FileSink` |
| `spellings`: what `add_source` and `add_sink` take in place of a source or sink | `from_source`, `sink_to` |

Programs import these names from PyFlink's paths in `common` and `datastream`. Each module has a line of its own in
`tests/test_layers.py`, right after the rooms that it builds on. Outside this room stay the operators and specs of split
and fold, since the graph lists every spec and `operators/build.py` every operator, and the folding state, which is a
kind of state that checkpoints hold.
"""
