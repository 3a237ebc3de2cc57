"""PyFlink's own tests, run on Ekorn from a copy of Flink's sources that is given by path.

    FLINK_SOURCES=path/to/flink python -m tests.pyflink.own_tests [-k words] [-v]

`stand_ins` holds what those tests import and Ekorn has no use for: PyFlink's test cases, its collecting sink, and the
gateway to a JVM. `running` loads the test files unchanged and runs them on one Spark session. `expected.py` names the
tests that do not pass, each with its reason. Nothing of Flink's sources is kept in the repository. The packages avro,
pytz and pandas must be installed, because some tests import them.
"""
