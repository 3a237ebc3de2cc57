"""Where the jars of Kafka are kept for the tests: once per checkout, in `.services`.

`spark_jars.txt` names the jars by which Spark reads and writes Kafka. They are of the newest versions that Maven
Central has, and work with Spark 4.3.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parents[3] / ".services" / "kafka"
SPARK_FOLDER = FOLDER.with_name("spark-kafka")
SPARK_LIST = Path(__file__).with_name("spark_jars.txt")
