"""Event-time timers: a reminder two seconds after each visit, with what was spent by then."""

from pyflink.common import Duration, WatermarkStrategy
from pyflink.common.typeinfo import Types
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ReducingStateDescriptor


class VisitTime(TimestampAssigner):

    def extract_timestamp(self, value, record_timestamp: int) -> int:
        return int(value[0])


class Reminder(KeyedProcessFunction):

    def open(self, runtime_context: RuntimeContext):
        self.spent = runtime_context.get_reducing_state(
            ReducingStateDescriptor("spent", lambda a, b: a + b, Types.INT()))

    def process_element(self, value, ctx: 'KeyedProcessFunction.Context'):
        self.spent.add(value[2])
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 2000)

    def on_timer(self, timestamp: int, ctx: 'KeyedProcessFunction.OnTimerContext'):
        yield f"remind {ctx.get_current_key()} at {timestamp} of {self.spent.get()}"


def remind():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    visits = env.from_collection(
        [(1000, 'Ada', 10), (4000, 'Ben', 3), (2500, 'Ada', 2), (2000, 'Ben', 5), (9000, 'Cem', 1)],
        type_info=Types.TUPLE([Types.LONG(), Types.STRING(), Types.INT()]))
    visits.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(2))
        .with_timestamp_assigner(VisitTime())) \
        .key_by(lambda visit: visit[1]) \
        .process(Reminder()) \
        .print()
    env.execute()


if __name__ == '__main__':
    remind()
