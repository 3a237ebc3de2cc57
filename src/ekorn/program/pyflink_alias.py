"""`pyflink` as another name of ekorn: a program that imports from PyFlink gets the classes of ekorn.

`install()` puts a finder before all others, so `pyflink` and everything below it is found in ekorn, whether or not
PyFlink itself is installed. `pyflink.common.typeinfo` becomes a module that holds the names of
`ekorn.common.typeinfo`. Its classes are the same objects, and their `__module__` begins with `ekorn`, so no pickle
of an object mentions the alias.

Every aliased module counts as a package. For `from pyflink.common import Name`, Python asks a package that has no such
name for a module `pyflink.common.Name`, and so calls this finder. A name that ekorn lacks raises an ImportError that
says what to use instead, while `hasattr` and `getattr` work as on any module.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

import ekorn
from ekorn.missing_names import missing_name_error
from ekorn.slot_protocol.deployment_codec import call_in_slots, do_not_call_in_slots

ALIAS = "pyflink"
API_VERSION = "2.3.0"  # the PyFlink whose names ekorn offers
OFFERED = ("common", "datastream", "metrics", "table", "util")  # the packages that stand at PyFlink's paths


def install() -> None:
    """Make `pyflink` another name of ekorn, in this process and in the slots of its jobs.

    Raises:
        ImportError: PyFlink itself was imported before.
    """
    if any(isinstance(finder, AliasFinder) for finder in sys.meta_path):
        return
    before = sys.modules.get(ALIAS)
    if before is not None:
        where = getattr(before, "__file__", None)
        raise ImportError(f"pyflink is already imported, from {where}: call ekorn.pyflink.install() before that")
    sys.meta_path.insert(0, AliasFinder())
    call_in_slots(install)


def uninstall() -> None:
    """Undo `install()`: later imports of `pyflink` find PyFlink itself, and new jobs do not alias it in their slots."""
    if not any(isinstance(finder, AliasFinder) for finder in sys.meta_path):
        return
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, AliasFinder)]
    for name in [name for name in sys.modules if name.partition(".")[0] == ALIAS]:
        del sys.modules[name]
    do_not_call_in_slots(install)


class AliasFinder(MetaPathFinder):
    """Finds `pyflink` and the modules below it in ekorn."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of an aliased module, or None if the name does not begin with `pyflink`."""
        if fullname != ALIAS and not fullname.startswith(ALIAS + "."):
            return None
        return ModuleSpec(fullname, AliasLoader(_aliased_module(fullname)), is_package=True)


class AliasLoader(Loader):
    """Fills a module of the alias with the names of a module of ekorn; `pyflink` itself has a version only."""

    def __init__(self, aliased: ModuleType | None) -> None:
        self._aliased = aliased

    def exec_module(self, module: ModuleType) -> None:
        """Fill the empty module that the import system made."""
        if self._aliased is None:
            module.__dict__.update(__version__=API_VERSION, __all__=["__version__"])
            return
        names = {n: value for n, value in vars(self._aliased).items() if n == "__all__" or not n.startswith("__")}
        module.__dict__.update(names, __doc__=self._aliased.__doc__)


def _aliased_module(fullname: str) -> ModuleType | None:
    """Return the module of ekorn that stands for a module of PyFlink, or None for `pyflink` itself.

    Raises:
        ModuleNotFoundError: There is none.
    """
    parent, _, name = fullname.rpartition(".")
    if not parent:
        return None
    ours = "ekorn" + fullname.removeprefix(ALIAS)
    siblings = _aliased_module(parent)
    may_exist = name in OFFERED if siblings is None else hasattr(siblings, "__path__")
    if not may_exist or not _exists(ours, siblings):
        raise missing_name_error(fullname, siblings)
    return importlib.import_module(ours)


def _exists(module: str, parent: ModuleType | None) -> bool:
    """Return whether ekorn has a module. Only files are searched: other finders raise errors of their own."""
    path = None if parent is None else list(parent.__path__)
    return PathFinder.find_spec(module, ekorn.__path__ if path is None else path) is not None
