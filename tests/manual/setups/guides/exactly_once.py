from pathlib import Path

Path("script.py").write_text("""
from ekorn.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1, 2, 3]).print()
env.execute("three numbers")
""")
