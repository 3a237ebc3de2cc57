"""Programs that the commands of a page start run their jobs in their own process, without a JVM."""

from ekorn.testing import on_local_engine

_engine = on_local_engine()  # kept: the engine is left when the generator is collected
_engine.__enter__()
