"""File sinks of the tests: by policy, bucket and clock."""

from ekorn.clock import ManualClock
from ekorn.common.serialization import Encoder
from ekorn.datastream.connectors.file_system import BucketAssigner, FileSink, RollingPolicy


class ByFirstLetter(BucketAssigner):
    def get_bucket_id(self, element, context):
        return element[0]


def sink_to(base, policy=None, clock=None, assigner=None, config=None):
    builder = FileSink.for_row_format(str(base), Encoder.simple_string_encoder())
    builder.with_bucket_assigner(assigner or BucketAssigner.base_path_bucket_assigner())
    if policy is not None:
        builder.with_rolling_policy(policy)
    if config is not None:
        builder.with_output_file_config(config)
    return builder.with_clock(clock or ManualClock()).with_bucket_check_interval(1000).build()


EACH_CHECKPOINT = RollingPolicy.on_checkpoint_rolling_policy()
BY_SIZE = RollingPolicy.default_rolling_policy(part_size=20, rollover_interval=5000, inactivity_interval=3000)
