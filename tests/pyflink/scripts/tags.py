"""Side outputs, also of a side output, each with a sink of its own."""

from pyflink.common import Types
from pyflink.datastream import OutputTag, StreamExecutionEnvironment
from pyflink.datastream.functions import ProcessFunction

ODD = OutputTag("odd", Types.INT())
LARGE = OutputTag("large", Types.STRING())


class Odd(ProcessFunction):
    def process_element(self, value, ctx: 'ProcessFunction.Context'):
        if value % 2:
            yield ODD, value
        else:
            yield value


class Large(ProcessFunction):
    def process_element(self, value, ctx: 'ProcessFunction.Context'):
        yield value
        if value > 4:
            yield LARGE, f"large {value}"


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
even = env.from_collection(list(range(10))).process(Odd(), Types.INT())
odd = even.get_side_output(ODD).process(Large(), Types.INT())
even.print("even")
odd.print("odd")
odd.get_side_output(LARGE).print("large")
env.execute("tags")
