"""Counts words of a text in batch mode; prints them, or writes them to a folder."""

import argparse
import sys

from pyflink.common import Encoder, Types, WatermarkStrategy
from pyflink.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import (
    FileSink,
    FileSource,
    OutputFileConfig,
    RollingPolicy,
    StreamFormat,
)

TEXT = ["the cat sat", "the dog sat too", "the cat left"]


def count_words(input_path, output_path):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.set_parallelism(1)
    if input_path is None:
        lines = env.from_collection(TEXT)
    else:
        source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), input_path).build()
        lines = env.from_source(source, WatermarkStrategy.for_monotonous_timestamps(), "text")

    def words(line):
        yield from line.split()

    counts = (
        lines.flat_map(words)
        .map(lambda word: (word, 1), output_type=Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda pair: pair[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )
    if output_path is None:
        print("counting")
        counts.print()
    else:
        naming = OutputFileConfig.builder().with_part_prefix("words").with_part_suffix(".txt").build()
        counts.sink_to(
            FileSink.for_row_format(output_path, Encoder.simple_string_encoder())
            .with_output_file_config(naming)
            .with_rolling_policy(RollingPolicy.default_rolling_policy())
            .build()
        )
    env.execute()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--input", required=False)
    parser.add_argument("--output", required=False)
    options, _ = parser.parse_known_args(sys.argv[1:])
    count_words(options.input, options.output)
