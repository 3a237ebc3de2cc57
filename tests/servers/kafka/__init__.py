"""Kafka brokers for tests: `jars` downloads them, `broker` and `cluster` run them, `topics` writes and reads topics.

Import the fixture `kafka` from `broker` into a conftest or a test module. Tests with a broker are marked `long` or
`spark`, so they run in one process and share one broker.
"""
