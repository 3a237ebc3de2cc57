"""Two connected streams: orders and rates of a currency meet in keyed state; each pair comes once."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import CoFlatMapFunction, RuntimeContext
from pyflink.datastream.state import ListStateDescriptor


class Convert(CoFlatMapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.orders = runtime_context.get_list_state(ListStateDescriptor("orders", Types.INT()))
        self.rates = runtime_context.get_list_state(ListStateDescriptor("rates", Types.DOUBLE()))

    def flat_map1(self, order):
        self.orders.add(order[1])
        for rate in self.rates.get():
            yield order[0], order[1] * rate

    def flat_map2(self, rate):
        self.rates.add(rate[1])
        for order in self.orders.get():
            yield rate[0], order * rate[1]


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
orders = env.from_collection([("eur", 10), ("usd", 20), ("eur", 30), ("chf", 40)])
rates = env.from_collection([("usd", 0.5), ("eur", 1.0), ("gbp", 1.25), ("usd", 0.75)])
orders.connect(rates).key_by(lambda order: order[0], lambda rate: rate[0]).flat_map(Convert()).print()
env.execute()
