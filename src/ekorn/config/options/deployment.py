"""Options of where a job runs: links between processes, and Python and Java dependencies."""

from __future__ import annotations

from typing import Literal

from ekorn.config.option import ConfigOption
from ekorn.config.options.kinds import at_least, choice, comma_list, text
from ekorn.config.value_text import parse_bool, parse_int

LINK_ENCRYPTION: ConfigOption[Literal["auto", "required", "off"]] = choice(
    "ekorn.links.encryption",
    "auto",
    ("auto", "required", "off"),
    "Which connections of driver, slots and Spark's tasks are encrypted: those between hosts, all over TCP, or none.",
)
LINK_CERTIFICATE_FILE = text(
    "ekorn.links.certificate-file",
    "A PEM file with the certificate and private key of encrypted connections; unless set, each job makes its own.",
)
DATA_FRAMES_DIR = text(
    "ekorn.data-frames.dir",
    "Where rows of DataFrames wait in files between Spark and the slots, as a path or URL that every machine sees.",
)
CONTROL = ConfigOption[bool | None](
    "ekorn.control.enabled",
    parse_bool,
    None,
    sentence="Whether `ekorn list`, `stop`, `cancel`, `savepoint trigger` reach the job; unless set, on Spark only.",
)
MOST_SLOTS = ConfigOption[int | None](
    "ekorn.slots.max",
    parse_int,
    None,
    sentence="The most slots that a job may take: a job that needs more does not start. The service sets it.",
    check=at_least(1),
)
PYTHON_FILES = comma_list("python.files", "Python files, package folders and zips for the slots' import path.")
PYTHON_ARCHIVES = comma_list(
    "python.archives", "Archives unpacked in the slots' working directory; path#folder unpacks into that folder."
)
PYTHON_EXECUTABLE = text("python.executable", "The interpreter that runs the slots.")
PYTHON_REQUIREMENTS = text(
    "python.requirements", "A requirements file to install for the slots; file#folder installs from that folder."
)
SPARK_JARS = comma_list("spark.jars", "Jars that Spark brings to the driver and the executors.")
SPARK_DRIVER_CLASSPATH = text("spark.driver.extraClassPath", "Paths added to the class path of Spark's driver.")
SPARK_EXECUTOR_CLASSPATH = text("spark.executor.extraClassPath", "Paths added to the class path of the executors.")
