"""`StreamExecutionEnvironment`: where a program starts, declares what its jobs run with, and runs them."""

from ekorn.program.environment.stream_execution_environment import StreamExecutionEnvironment

__all__ = ["StreamExecutionEnvironment"]
