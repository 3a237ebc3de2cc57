"""The arguments of the commands for jobs: the address of the service, the job, and what to do with the job."""

from __future__ import annotations

import argparse
from typing import Any

from ekorn.cli import job_commands as jobs
from ekorn.cli.log_command import logs
from ekorn.service.client.service_client import ServiceClient

__all__ = ["add_jobs", "add_service_address", "add_trigger", "service_of"]


def add_service_address(parser: argparse.ArgumentParser) -> None:
    """Let a command name a service on another machine."""
    # Flink: `-m` names the job manager.
    parser.add_argument(
        "-m",
        "--service",
        "--jobmanager",
        dest="address",
        metavar="ADDRESS",
        help="the address of the service; host:port means HTTPS",
    )
    parser.add_argument("--token-file", metavar="FILE", help="the file with the token of the service")
    parser.add_argument(
        "--certificate-file", metavar="FILE", help="the certificate of the service, or of the authority that signed it"
    )
    parser.add_argument(
        "--allow-plain-http",
        action="store_true",
        help="send the token unencrypted to a service at http://host:port on another machine",
    )


def service_of(given: argparse.Namespace) -> ServiceClient | None:
    """Return the client of the service that a command names, or of the user's own; None if none runs."""
    return jobs.service_for(
        given.address, given.token_file, given.certificate_file, allow_plain_http=given.allow_plain_http
    )


_JOB = "the id of the job, the beginning of the id, or the name, as `ekorn list` shows them"


def add_jobs(commands: Any) -> None:
    """Add the commands for jobs."""
    listing = commands.add_parser("list", help="list your jobs that run on this machine, and those of the service")
    shown = listing.add_mutually_exclusive_group()
    for short, name, help_text in (
        ("-a", "all", "list ended jobs too"),
        ("-r", "running", "list only running jobs"),
        ("-s", "scheduled", "list only jobs that have not started"),
    ):
        shown.add_argument(short, f"--{name}", dest="shown", action="store_const", const=name, help=help_text)
    add_service_address(listing)
    listing.set_defaults(command=lambda given: jobs.list_jobs(service_of(given), given.shown or "unended"))
    log = commands.add_parser("logs", help="print the log of a job that runs or has ended")
    log.add_argument("-f", "--follow", action="store_true", help="keep printing new lines until the job ends")
    log.add_argument("job", metavar="JOB", help=_JOB)
    add_service_address(log)
    log.set_defaults(command=lambda given: logs(service_of(given), given.job, follow=given.follow))
    _add_changes(commands)
    live = commands.add_parser("top", help="show the jobs, updated live")
    add_service_address(live)
    live.set_defaults(command=lambda given: jobs.top(service_of(given)))
    stop = commands.add_parser("stop", help="stop a job with a savepoint")
    stop.add_argument(
        "-p",
        "--savepoint-path",
        "--savepointPath",
        metavar="DIRECTORY",
        help="the directory of the savepoint; by default, the one configured for the job",
    )
    stop.add_argument(
        "-d",
        "--drain",
        action="store_true",
        help="advance event time to its end first; do not use it if the job will be resumed",
    )
    _add_format(stop)
    stop.add_argument("job", metavar="JOB", help=_JOB)
    add_service_address(stop)
    stop.set_defaults(
        command=lambda given: jobs.stop(
            service_of(given), given.job, given.savepoint_path, drain=given.drain, native=given.native
        )
    )
    cancel = commands.add_parser("cancel", help="cancel a job")
    cancel.add_argument(
        "-s",
        "--with-savepoint",
        "--withSavepoint",
        metavar="DIRECTORY",
        nargs="?",
        const="",
        help="take a savepoint first, in this directory or, by default, in the one configured for the job",
    )
    cancel.add_argument("job", metavar="JOB", nargs="?", help=_JOB)
    add_service_address(cancel)
    cancel.set_defaults(command=lambda given: _cancel(cancel, given))


def _add_changes(commands: Any) -> None:
    rescale = commands.add_parser("rescale", help="change the parallelism of a running job")
    rescale.add_argument("-p", "--parallelism", type=int, required=True, metavar="N")
    upgrade = commands.add_parser("upgrade", help="continue a job of the service with a new program")
    for one in (rescale, upgrade):
        one.add_argument(
            "--savepoint-path", "--savepointPath", metavar="DIRECTORY", help="the directory of the savepoint"
        )
        one.add_argument("job", metavar="JOB", help=_JOB)
        add_service_address(one)
    upgrade.add_argument(
        "-n",
        "--allow-non-restored-state",
        "--allowNonRestoredState",
        action="store_true",
        help="drop saved state for which the new program has no operator, instead of failing",
    )
    upgrade.add_argument("script", help="the new program")
    upgrade.add_argument(
        "arguments", nargs=argparse.REMAINDER, help="the arguments of the program; by default, those of the old program"
    )
    rescale.set_defaults(
        command=lambda given: jobs.rescale(service_of(given), given.job, given.parallelism, given.savepoint_path)
    )
    upgrade.set_defaults(
        command=lambda given: jobs.upgrade(
            service_of(given),
            given.job,
            given.script,
            given.arguments,
            given.savepoint_path,
            drops_state=given.allow_non_restored_state,
        )
    )


def _cancel(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    job, directory = given.job, given.with_savepoint
    if job is None:
        job, directory = directory, "" if directory else None  # Flink: a single argument after -s is the job
    if not job:
        parser.error("the following arguments are required: JOB")
    return jobs.cancel(service_of(given), job, with_savepoint=directory is not None, directory=directory or None)


def add_trigger(commands: Any) -> None:
    """Add `savepoint trigger`."""
    trigger = commands.add_parser("trigger", help="take a savepoint of a job that keeps running")
    trigger.add_argument("job", metavar="JOB", help=_JOB)
    trigger.add_argument(
        "directory",
        metavar="DIRECTORY",
        nargs="?",
        help="the directory of the savepoint; by default, the one configured for the job",
    )
    trigger.add_argument(
        "-p", "--savepoint-path", "--savepointPath", metavar="DIRECTORY", help="the same, as `stop` spells it"
    )
    _add_format(trigger)
    add_service_address(trigger)
    trigger.set_defaults(command=lambda given: _trigger(trigger, given))


def _trigger(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    if given.directory is not None and given.savepoint_path is not None:
        parser.error(f"one directory, please: {given.directory!r} or -p {given.savepoint_path!r}")
    return jobs.trigger(service_of(given), given.job, given.directory or given.savepoint_path, native=given.native)


def _add_format(parser: argparse.ArgumentParser) -> None:
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(
        "--native", action="store_true", help="write the savepoint in the format of the job's state backend"
    )
    chosen.add_argument(
        "-type",
        "--type",
        dest="native",
        type=_is_native,
        metavar="canonical|native",
        help="the same, in Flink's form; canonical is the default",
    )


def _is_native(text: str) -> bool:
    if text.lower() not in ("canonical", "native"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither canonical nor native")
    return text.lower() == "native"
