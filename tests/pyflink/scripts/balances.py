"""Balances per customer in keyed state that expires."""

from pyflink.common import Time
from pyflink.common.typeinfo import Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import StateTtlConfig, ValueStateDescriptor


class Balance(KeyedProcessFunction):

    def __init__(self):
        self.state = None

    def open(self, runtime_context: RuntimeContext):
        descriptor = ValueStateDescriptor("balance", Types.FLOAT())
        descriptor.enable_time_to_live(
            StateTtlConfig.new_builder(Time.hours(1))
            .set_update_type(StateTtlConfig.UpdateType.OnReadAndWrite)
            .disable_cleanup_in_background()
            .build()
        )
        self.state = runtime_context.get_state(descriptor)

    def process_element(self, value, ctx: 'KeyedProcessFunction.Context'):
        balance = (self.state.value() or 0) + value[1]
        self.state.update(balance)
        yield value[0], balance


if __name__ == '__main__':
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    payments = env.from_collection(
        [("Ada", 10.5), ("Ben", 3.25), ("Ada", -0.1), ("Cem", 7.0), ("Ben", 1.1)],
        type_info=Types.TUPLE([Types.STRING(), Types.FLOAT()]),
    )
    payments.key_by(lambda payment: payment[0]).process(Balance()).print()
    env.execute()
