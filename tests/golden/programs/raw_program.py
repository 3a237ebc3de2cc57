"""A program with raw state, whose checkpoints are kept: its function has a dict of its own, and no managed state.

It must stay as it is: old checkpoints are restored into it.
"""

import json
import pickle
from collections import Counter, defaultdict

from ekorn.common import Configuration, RestartStrategies, WatermarkStrategy
from ekorn.datastream import CheckpointedFunction, ExternalizedCheckpointRetention, StreamExecutionEnvironment
from ekorn.datastream.functions import KeyedProcessFunction
from ekorn.testing.by_epoch import EpochSource

KEYS = ["a", "b", "c", 7, ("t", 1)]
FILLED = 4  # epochs before the checkpoint that is kept
RUNS = [[(key, epoch) for key in KEYS] for epoch in range(FILLED)]
TELLING = [[(key, 100)] for key in KEYS]


class OwnCounts(KeyedProcessFunction, CheckpointedFunction):
    """Counts the records of each key in a dict, and those of the subtask in a list."""

    def initialize_state(self, context):
        self.counts = Counter()
        for piece in context.get_raw_keyed_state_inputs():
            self.counts.update(pickle.load(piece.get_stream()))
        self.runs = [json.load(partition.get_stream()) for partition in context.get_raw_operator_state_inputs()]
        self.here = 0

    def snapshot_state(self, context):
        keyed = context.get_raw_keyed_operator_state_output()
        by_group = defaultdict(dict)
        for key, count in self.counts.items():
            by_group[keyed.key_group_of(key)][key] = count
        for group in keyed.get_key_group_list():
            if by_group[group]:
                keyed.start_new_key_group(group)
                pickle.dump(by_group[group], keyed)
        out = context.get_raw_operator_state_output()
        for part in [*self.runs, {"records": self.here}]:
            out.start_new_partition()
            out.write(json.dumps(part).encode())

    def process_element(self, value, ctx):
        self.here += 1
        key, number = value
        self.counts[key] += 1
        if number >= 100:
            yield f"{key}: {self.counts[key]}"


def environment(directory, parallelism):
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    env.set_parallelism(parallelism).set_max_parallelism(16)
    env.enable_checkpointing(10)
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(directory))
    env.get_checkpoint_config().set_externalized_checkpoint_retention(
        ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
    )
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 0))
    return env


def draw(env, function=None):
    source = env.from_source(EpochSource([*RUNS, *TELLING]), WatermarkStrategy.no_watermarks(), "records")
    records = source.uid("records")
    return records.key_by(lambda record: record[0]).process(function or OwnCounts()).uid("own").name("own")
