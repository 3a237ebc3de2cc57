"""Change the code in small ways and count how many of the changes the tests notice.

    python -m tests.mutation                                   60 mutants of each room, another sample every time
    python -m tests.mutation --seed 7 --per-room 20            a smaller sample, the same one every time
    python -m tests.mutation --room checkpoint --per-room 0    every site of a room: hours
    python -m tests.mutation --again                           the survivors of the run before

Each mutant runs against the fast tests that reach its line: first those of its own room, then the others. The seed is
printed. Survivors are printed with file, line and change, and kept in build/mutation/survivors.json. A mutant that
behaves as the original does is listed, with the reason, in tests/mutation/equivalent.toml, and is not drawn.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path

from tests.mutation.mutant import Mutant
from tests.mutation.mutants import every_mutant, sample
from tests.mutation.reach import Reach, ReachingTest, measure
from tests.mutation.rooms import ROOMS, modules, tests_of, words
from tests.mutation.trial import ROOT, Outcome, Workspace, import_what_no_mutant_changes

WORK = ROOT / "build" / "mutation"
SURVIVORS = WORK / "survivors.json"


def main() -> int:
    """Run a sample; return 1 when it scored less than was asked for."""
    arguments = _arguments()
    os.nice(max(0, 10 - os.nice(0)))
    seed = arguments.seed if arguments.seed is not None else random.randrange(1_000_000)
    workspace = Workspace(WORK)
    workspace.refresh()
    rooms = arguments.room or list(ROOMS)
    reach = measure(workspace.root, tests_of(rooms), WORK / "reach", again=arguments.measure)
    import_what_no_mutant_changes()
    results: dict[str, Counter[Outcome]] = {}
    survivors: list[Mutant] = []
    for room in rooms:
        source = workspace.source("")  # of the copy: the repository may change meanwhile
        paths = modules(room, source)
        if arguments.again:
            mutants = _survivors(source, paths)
        else:
            mutants = sample(source, paths, seed=f"{seed} {room}", size=arguments.per_room or None)
        results[room] = Counter()
        for number, mutant in enumerate(mutants, 1):
            started = time.monotonic()
            outcome = _judge(mutant, room, workspace, reach, arguments.seconds)
            results[room][outcome] += 1
            took = time.monotonic() - started
            print(
                f"{room} {number}/{len(mutants)} {mutant.path}:{mutant.line} {outcome.value} ({took:.1f} s)", flush=True
            )
            if outcome in (Outcome.SURVIVED, Outcome.UNREACHED):
                survivors.append(mutant)
                print(_change(mutant), flush=True)
    SURVIVORS.write_text(json.dumps([mutant.identity for mutant in survivors], indent=1))
    return _report(results, survivors, seed, arguments)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutation", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, help="draw the same sample again")
    parser.add_argument("--per-room", type=int, default=60, metavar="N", help="mutants of each room; 0: every site")
    parser.add_argument("--room", action="append", choices=list(ROOMS), help="only this room; may be repeated")
    parser.add_argument("--seconds", type=float, default=45, help="tests of its own room that a mutant is given")
    parser.add_argument("--again", action="store_true", help="try the survivors of the run before")
    parser.add_argument("--measure", action="store_true", help="measure again which lines the tests reach")
    parser.add_argument("--goal", type=float, default=0, metavar="PERCENT", help="fail below this score")
    return parser.parse_args()


def _survivors(source: Path, paths: list[str]) -> list[Mutant]:
    wanted = {tuple(identity) for identity in json.loads(SURVIVORS.read_text())}
    found = {
        mutant.identity: mutant
        for path in sorted({path for path, *_rest in wanted} & set(paths))
        for mutant in every_mutant(path, (source / path).read_text())
        if mutant.identity in wanted
    }
    return list(found.values())


def _judge(mutant: Mutant, room: str, workspace: Workspace, reach: Reach, seconds: float) -> Outcome:
    """Try the tests of the mutant's room, then the others that reach it."""
    outcome = Outcome.UNREACHED
    for tests in _tests(mutant, room, workspace, reach, seconds):
        outcome = workspace.try_out(mutant, tests)
        if outcome is not Outcome.SURVIVED:
            break
    return outcome


def _tests(mutant: Mutant, room: str, workspace: Workspace, reach: Reach, seconds: float) -> list[list[ReachingTest]]:
    """Return the tests of a mutant's own room, those whose names speak of it first; then others, the quickest first."""
    reaching = reach.tests_of(mutant, workspace.source(mutant.path).read_text())
    own = f"tests/{ROOMS[room].tests}/"
    about = words(Path(mutant.path).stem) | words(mutant.function)
    related = sorted(reaching, key=lambda test: -len(about & words(test.node_id.removeprefix(own))))
    near = _within([test for test in related if test.node_id.startswith(own)], seconds)
    far = _within([test for test in reaching if test not in near], 2 * seconds)
    return [tests for tests in (near, far) if tests]


def _within(tests: list[ReachingTest], seconds: float) -> list[ReachingTest]:
    """Return as many of the tests, the first ones, as take so many seconds together; at least one."""
    chosen: list[ReachingTest] = []
    for test in tests:
        seconds -= test.seconds
        if seconds < 0 and chosen:
            break
        chosen.append(test)
    return chosen


def _change(mutant: Mutant) -> str:
    return f"    in {mutant.function or 'the module'}\n    - {mutant.before}\n    + {mutant.after}"


def _report(
    results: dict[str, Counter[Outcome]], survivors: list[Mutant], seed: int, arguments: argparse.Namespace
) -> int:
    print("\nSurvivors:" if survivors else "\nNo survivors.")
    for mutant in survivors:
        print(f"src/ekorn/{mutant.path}:{mutant.line} ({mutant.operator})\n{_change(mutant)}")
    print(f"\n{'room':<12}{'mutants':>9}{'killed':>9}{'timed out':>11}{'survived':>10}{'not reached':>13}{'score':>8}")
    results["all"] = sum(results.values(), Counter())
    for room, counts in results.items():
        columns = [counts.total()] + [counts[outcome] for outcome in (Outcome.KILLED, Outcome.TIMED_OUT)]
        columns += [counts[outcome] for outcome in (Outcome.SURVIVED, Outcome.UNREACHED)]
        score = _score(counts)
        print("{:<12}{:>9}{:>9}{:>11}{:>10}{:>13}{:>8}".format(room, *columns, f"{score:.1f} %"))
    sampled = "the survivors of the run before" if arguments.again else f"seed {seed}, {arguments.per_room} a room"
    print(f"sample: {sampled}; a mutant that timed out counts as killed, one that no test reaches as survived")
    return int(_score(results["all"]) < arguments.goal)


def _score(counts: Counter[Outcome]) -> float:
    noticed = counts[Outcome.KILLED] + counts[Outcome.TIMED_OUT]
    return 100 * noticed / counts.total() if counts else 100.0


if __name__ == "__main__":
    sys.exit(main())
