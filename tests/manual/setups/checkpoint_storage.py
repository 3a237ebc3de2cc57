"""An environment, and a savepoint from before the key."""

from ekorn.common import WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy

env = StreamExecutionEnvironment.get_execution_environment()
numbers = DataGeneratorSource(lambda number: number, None, RateLimiterStrategy.per_second(100))
env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers").key_by(lambda n: n % 7).reduce(max)
env.execute_async("numbers").stop_with_savepoint(False, "savepoints").result()
