"""Options of the deployment of a job: connections, control, slots, Python and Java dependencies."""

from __future__ import annotations

from typing import Literal

from ekorn.config.option import ConfigOption
from ekorn.config.options.kinds import at_least, choice, comma_list, text
from ekorn.config.value_text import parse_bool, parse_int

LINK_ENCRYPTION: ConfigOption[Literal["auto", "required", "off"]] = choice(
    "ekorn.links.encryption",
    "auto",
    ("auto", "required", "off"),
    "Which connections between driver, slots and Spark's tasks are encrypted: those between hosts "
    "(`auto`), every TCP connection (`required`), or none (`off`).",
)
LINK_CERTIFICATE_FILE = text(
    "ekorn.links.certificate-file",
    "A PEM file with the certificate and the private key for encrypted connections. By default, each job "
    "generates its own.",
)
DATA_FRAMES_DIR = text(
    "ekorn.data-frames.dir",
    "The directory through which the rows of DataFrames pass between Spark and the slots: a path or URL "
    "that every machine can reach.",
)
CONTROL = ConfigOption[bool | None](
    "ekorn.control.enabled",
    parse_bool,
    None,
    sentence="Whether `ekorn list`, `stop`, `cancel` and `savepoint trigger` reach the job. By default, they "
    "reach jobs that run on Spark.",
)
MOST_SLOTS = ConfigOption[int | None](
    "ekorn.slots.max",
    parse_int,
    None,
    sentence="The maximum number of slots of a job. A job that needs more does not start. The service sets it.",
    check=at_least(1),
)
PYTHON_FILES = comma_list(
    "python.files", "Python files, package folders and zip files that are added to the import path of the slots."
)
PYTHON_ARCHIVES = comma_list(
    "python.archives",
    "Archives that are unpacked into the working directory of the slots; `path#folder` unpacks into that folder.",
)
PYTHON_EXECUTABLE = text("python.executable", "The Python interpreter that runs the slots.")
PYTHON_REQUIREMENTS = text(
    "python.requirements",
    "A requirements file whose packages are installed for the slots; `file#folder` installs them from that folder.",
)
SPARK_JARS = comma_list("spark.jars", "Jars that Spark ships to the driver and the executors.")
SPARK_DRIVER_CLASSPATH = text(
    "spark.driver.extraClassPath", "Paths that are added to the class path of Spark's driver."
)
SPARK_EXECUTOR_CLASSPATH = text(
    "spark.executor.extraClassPath", "Paths that are added to the class path of Spark's executors."
)
