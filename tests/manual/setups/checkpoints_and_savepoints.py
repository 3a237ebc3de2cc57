from ekorn.common import Types, WatermarkStrategy
from ekorn.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.datastream.state import ValueStateDescriptor


class Totals(KeyedProcessFunction):
    def open(self, runtime_context):
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value, ctx):
        self.total.update((self.total.value() or 0) + value)


env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
orders = DataGeneratorSource(lambda number: number, 10_000_000, RateLimiterStrategy.per_second(500), Types.LONG())
stream = env.from_source(orders, WatermarkStrategy.no_watermarks(), "orders").uid("orders")
stream.key_by(lambda order: order % 7).process(Totals()).name("totals").uid("totals").print()
