"""The command line `ekorn`: parses arguments, calls the commands, and turns errors into messages and exit codes.

    ekorn run [-d] [-t TARGET] [--resume | -s PATH] [-n] [-p N] [-D key=value ...] script.py [argument ...]
    ekorn service start [--foreground] | stop | status [-D key=value ...]
    ekorn list [-a | -r | -s]
    ekorn logs [-f] JOB
    ekorn top
    ekorn info [-p N] [-D key=value ...] script.py [argument ...]
    ekorn rescale -p N JOB
    ekorn upgrade [-n] JOB script.py [argument ...]
    ekorn stop [-p DIRECTORY] [-d] JOB
    ekorn cancel [-s [DIRECTORY]] JOB
    ekorn savepoint [trigger] JOB [DIRECTORY | -p DIRECTORY]
    ekorn savepoint list DIRECTORY
    ekorn savepoint show PATH
    ekorn savepoint dispose PATH
    ekorn savepoint sign PATH [--key-file FILE]
    ekorn savepoint verify PATH [--key-file FILE]
    ekorn state show PATH [--uid UID] [--sample N]
    ekorn state get PATH UID KEY
    ekorn state diff OLD NEW [--uid UID]
    ekorn state export PATH UID DIRECTORY [--state NAME | --timers]
    ekorn state edit PATH UID FILE:FUNCTION NEW
    ekorn --version

Commands for jobs take `-m ADDRESS`, `--token-file FILE` and `--certificate-file FILE` for a service on another machine.
`-m host:port` means HTTPS. `--allow-plain-http` lets the token go unencrypted to an address `http://host:port`.

Exit codes: 0 for success, 1 for a failure, 2 for wrong arguments, 130 for an interrupt. `run` exits with the code of
the program.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

import ekorn
from ekorn.cli import savepoint_commands as savepoints
from ekorn.cli import service_commands as services
from ekorn.cli import state_commands as states
from ekorn.cli.job_arguments import add_jobs, add_service_address, add_trigger
from ekorn.cli.run_command import run_program
from ekorn.cli.submission import run_submission, submit_program
from ekorn.config import options
from ekorn.config.configuration import Configuration
from ekorn.config.settings.job_settings import JobSettings
from ekorn.config.value_text import parse_memory_bytes
from ekorn.driver.submit import graphs_shown_to
from ekorn.errors import EkornError
from ekorn.graph.job_graph import JobGraph
from ekorn.graph.plan import execution_plan
from ekorn.service.client.service_client import ServiceClient

__all__ = ["main", "show_plan"]

FAILED, INTERRUPTED = 1, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code.

    Args:
        arguments: The arguments of the command; None for those of the process.
    """
    parser = _parser()
    given = parser.parse_args(_with_trigger(sys.argv[1:] if arguments is None else list(arguments)))
    command: Callable[[argparse.Namespace], int] = given.command
    try:
        return command(given)
    except (EkornError, OSError) as error:
        if not (isinstance(error, BrokenPipeError) and _reader_has_ended()):
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def _reader_has_ended() -> bool:
    """Return whether the program that read the output has ended, such as `head`; then further output is dropped."""
    output = sys.stdout.fileno()
    pipe = select.poll()
    pipe.register(output, 0)
    if not any(event & select.POLLERR for _, event in pipe.poll(0)):
        return False
    with open(os.devnull, "w") as nowhere:
        # Otherwise the interpreter fails when it flushes the remaining output at its exit.
        os.dup2(nowhere.fileno(), output)
    return True


def _with_trigger(arguments: list[str]) -> list[str]:
    """Return the arguments of `savepoint JOB`, as Flink spells it, in the form of `savepoint trigger JOB`."""
    if arguments[:1] != ["savepoint"] or len(arguments) < 2:
        return arguments
    is_other = arguments[1] in _SAVEPOINT_COMMANDS or arguments[1].startswith(("-h", "--help", "-d", "--dispose"))
    return arguments if is_other else ["savepoint", "trigger", *arguments[1:]]


_SAVEPOINT_COMMANDS = ("trigger", "list", "show", "dispose", "sign", "verify")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ekorn", description="Stateful stream processing in Python, on Spark.")
    parser.add_argument("--version", action="version", version=f"ekorn {ekorn.__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="command")
    _add_run(commands.add_parser("run", help="run a program, with settings for its environments"))
    _add_info(commands.add_parser("info", help="print the plan of a program without running it"))
    _add_service(commands.add_parser("service", help="start, stop or inspect the service"))
    submission = commands.add_parser("submission")  # has no help line, because only the service calls it
    submission.add_argument("file")
    submission.set_defaults(command=lambda given: run_submission(given.file))
    add_jobs(commands)
    _add_savepoint(commands.add_parser("savepoint", help="trigger, list, show, dispose of, sign and verify savepoints"))
    _add_state(commands.add_parser("state", help="show, compare, export and edit the state in savepoints"))
    return parser


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "ekorn run [-d] [-t TARGET] [--resume | -s PATH] [-n] [--claim-mode MODE] [-p N] [-D key=value ...] "
        "script.py [argument ...]"
    )
    parser.add_argument(
        "-d", "--detached", action="store_true", help="submit to the service, print the id of the job, and return"
    )
    parser.add_argument(
        "-t",
        "--target",
        metavar="TARGET",
        help="`local` for this process (the default), `service`, or the address of a Spark master",
    )
    parser.add_argument(
        "--slot-memory", metavar="SIZE", type=_memory, default=0, help="memory that each slot claims and may use"
    )
    parser.add_argument(
        "--files", metavar="PATH", action="append", default=[], help="a further file or folder to send to the service"
    )
    add_service_address(parser)
    # Flink: its spellings of the long names are accepted too.
    parser.add_argument(
        "-s", "--from-savepoint", "--fromSavepoint", metavar="PATH", help="start from this savepoint or checkpoint"
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="continue the job of the same name from its newest checkpoint; start from the beginning if there is none",
    )
    parser.add_argument(
        "-n",
        "--allow-non-restored-state",
        "--allowNonRestoredState",
        action="store_true",
        help="drop saved state for which the program has no operator, instead of failing",
    )
    parser.add_argument(
        "--claim-mode",
        "--claimMode",
        "--restoreMode",
        choices=["NO_CLAIM", "CLAIM", "LEGACY"],
        type=str.upper,
        help="whether the job takes over the files of the savepoint; NO_CLAIM unless configured otherwise",
    )
    _add_program(parser)
    parser.set_defaults(command=lambda given: _run(parser, given))


def _add_info(parser: argparse.ArgumentParser) -> None:
    parser.usage = "ekorn info [-p N] [-D key=value ...] script.py [argument ...]"
    _add_program(parser)
    parser.set_defaults(command=lambda given: show_plan(given.script, given.arguments, _configuration(parser, given)))


def _add_program(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name a program and the configuration that its environments start from."""
    parser.add_argument(
        "-p", "--parallelism", type=int, metavar="N", help="parallelism of operators that do not set their own"
    )
    parser.add_argument("-c", "--class", dest="entry_class", metavar="CLASS", help=argparse.SUPPRESS)
    _add_settings(parser, "a setting that overrides config.yaml and is overridden by the program")
    parser.add_argument("script", help="the program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the arguments of the program")


def _add_settings(parser: argparse.ArgumentParser, help_text: str) -> None:
    parser.add_argument(
        "-D", dest="settings", metavar="key=value", action="append", default=[], type=_setting, help=help_text
    )


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of entries, such as 0 or 10")
    return int(text)


def _memory(text: str) -> int:
    try:
        return parse_memory_bytes(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key.strip() or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form key=value")
    return key.strip(), value


def _configuration(parser: argparse.ArgumentParser, given: argparse.Namespace) -> Configuration:
    """Return the configuration of a program's environments, from the arguments that all such commands share."""
    if given.entry_class is not None:
        parser.error(
            f"-c names a class in a jar ({given.entry_class!r}); a Python program has none: name the script instead, "
            "and pass what it should start as an argument of the script"
        )
    configuration = Configuration()
    for key, value in given.settings:
        configuration.set_string(key, value)
    if given.parallelism is not None:
        configuration.set_integer(options.PARALLELISM.key, given.parallelism)
    return configuration


def _run(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    configuration = _configuration(parser, given)
    if given.from_savepoint is not None:
        configuration.set_string(options.RESTORE_PATH.key, savepoints.absolute(given.from_savepoint))
    if given.resume:
        configuration.set_boolean(options.RESUME.key, True)
    if given.allow_non_restored_state:
        configuration.set_boolean(options.RESTORE_IGNORE_UNCLAIMED.key, True)
    if given.claim_mode is not None:
        configuration.set_string(options.RESTORE_CLAIM_MODE.key, given.claim_mode)
    target = given.target or ("service" if given.detached else "local")
    if target == "service":
        return submit_program(
            ServiceClient(
                given.address, given.token_file, given.certificate_file, allow_plain_http=given.allow_plain_http
            ),
            given.script,
            given.arguments,
            configuration.to_dict(),
            slot_memory_bytes=given.slot_memory,
            files=given.files,
            detached=given.detached,
        )
    if given.detached:
        parser.error(f"-d needs the target 'service', not {target!r}: a job in this process ends when the process ends")
    if target != "local":
        configuration.set_string("spark.master", target)
    return run_program(given.script, given.arguments, configuration)


def _add_service(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(title="commands", required=True, metavar="command")
    for name, command, help_text in (
        ("start", services.start, "start your service in a process of its own"),
        ("stop", services.stop, "stop the service; its jobs keep running, and the next service finds them"),
        ("status", services.status, "print the address of the service and what it runs"),
    ):
        one = commands.add_parser(name, help=help_text)
        _add_settings(one, "a setting of the service that overrides config.yaml")
        one.set_defaults(command=lambda given, command=command: command(Configuration.from_dict(dict(given.settings))))
        if command is services.start:
            one.add_argument(
                "--foreground",
                action="store_true",
                help="run the service in this process and log to standard error, for systemd and containers",
            )
            one.set_defaults(command=_start_service)


def _start_service(given: argparse.Namespace) -> int:
    settings = Configuration.from_dict(dict(given.settings))
    return services.run_in_foreground(settings) if given.foreground else services.start(settings)


def _add_savepoint(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-d", "--dispose", metavar="PATH", help="the same as `dispose PATH`, in Flink's form")
    parser.set_defaults(command=lambda given: _dispose_or_explain(parser, given.dispose))
    commands = parser.add_subparsers(title="commands", metavar="command")
    add_trigger(commands)
    for name, command, help_text, argument in (
        ("list", savepoints.list_all, "list the savepoints and checkpoints below a directory", "DIRECTORY"),
        ("show", savepoints.show, "show what a savepoint or checkpoint holds", "PATH"),
        ("dispose", savepoints.dispose, "delete a savepoint or checkpoint", "PATH"),
    ):
        one = commands.add_parser(name, help=help_text)
        one.add_argument("path", metavar=argument)
        one.set_defaults(command=lambda given, command=command: command(given.path))
    for name, with_key, help_text in (
        (
            "sign",
            savepoints.sign,
            "sign a savepoint that was taken without a key, so that jobs with the key restore it",
        ),
        ("verify", savepoints.verify, "check the signature and every file of a savepoint or checkpoint"),
    ):
        one = commands.add_parser(name, help=help_text)
        one.add_argument("path", metavar="PATH")
        one.add_argument(
            "--key-file",
            metavar="FILE",
            help=f"the signing key; by default, it is read from the file that {options.SIGNING_KEY_FILE.key} names",
        )
        one.set_defaults(command=lambda given, command=with_key: command(given.path, given.key_file))


def _dispose_or_explain(parser: argparse.ArgumentParser, path: str | None) -> int:
    if path is None:
        parser.error("a command is missing: trigger, list, show, dispose, sign or verify")
    return savepoints.dispose(path)


_UID = "the uid of the operator, or its id of 32 hex digits"


def _add_state(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(title="commands", required=True, metavar="command")
    show = commands.add_parser("show", help="count the entries of every state, and show some of them")
    show.add_argument("path", metavar="PATH", help="a savepoint or checkpoint")
    show.add_argument("--uid", help=_UID)
    show.add_argument("--sample", metavar="N", type=_count, default=3, help="entries shown of each state; 3 by default")
    show.set_defaults(command=lambda given: states.show(given.path, given.uid, given.sample))
    get = commands.add_parser("get", help="print all state of a key")
    get.add_argument("path", metavar="PATH", help="a savepoint or checkpoint")
    get.add_argument("uid", metavar="UID", help=_UID)
    get.add_argument("key", metavar="KEY", help="a key of the declared type, or a Python literal such as ('a', 1)")
    get.set_defaults(command=lambda given: states.get(given.path, given.uid, given.key))
    diff = commands.add_parser("diff", help="print what was added, removed or changed between two savepoints")
    diff.add_argument("old", metavar="OLD", help="a savepoint or checkpoint")
    diff.add_argument("new", metavar="NEW", help="a savepoint or checkpoint")
    diff.add_argument("--uid", help=_UID)
    diff.set_defaults(command=lambda given: states.diff(given.old, given.new, given.uid))
    export = commands.add_parser("export", help="write the state of an operator as Parquet files")
    export.add_argument("path", metavar="PATH", help="a savepoint or checkpoint")
    export.add_argument("uid", metavar="UID", help=_UID)
    export.add_argument("directory", metavar="DIRECTORY", help="a new local directory")
    what = export.add_mutually_exclusive_group()
    what.add_argument("--state", metavar="NAME", help="export one state, keyed or not, with a row for each entry")
    what.add_argument("--timers", action="store_true", help="the registered timers")
    export.set_defaults(
        command=lambda given: states.export(
            given.path, given.uid, given.directory, state=given.state, timers=given.timers
        )
    )
    edit = commands.add_parser("edit", help="change keyed state with a Python function, and write a new savepoint")
    edit.add_argument("path", metavar="PATH", help="a savepoint or checkpoint, which is not changed")
    edit.add_argument("uid", metavar="UID", help=_UID)
    edit.add_argument(
        "function", metavar="FILE:FUNCTION", help="a function that is called with each key and a dict of its states"
    )
    edit.add_argument("new", metavar="NEW", help="the directory of the new savepoint")
    edit.set_defaults(command=lambda given: states.edit(given.path, given.uid, given.function, given.new))


def show_plan(script: str, arguments: Sequence[str], configuration: Configuration) -> int:
    """Run a program up to the start of its first job, and print the plan of the job: nothing else on standard output.

    Args:
        script: The program.
        arguments: Its arguments.
        configuration: What its environments start from.
    """
    plans: list[str] = []

    def keep(graph: JobGraph, settings: JobSettings) -> NoReturn:
        plans.append(execution_plan(graph))
        raise SystemExit(0)

    with _prints_to_stderr(), graphs_shown_to(keep):
        code = run_program(script, arguments, configuration)
    for plan in plans:
        print(plan)
    return code


@contextlib.contextmanager
def _prints_to_stderr() -> Iterator[None]:
    """Send what the program and its children print to standard error."""
    sys.stdout.flush()
    before = os.dup(1)
    os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        sys.stdout.flush()  # what was written without `print`
        os.dup2(before, 1)
        os.close(before)
