"""`pyflink` as another name of this package: what a program imports from PyFlink, it gets from Tamias.

`install()` puts a finder before all others, so that `pyflink` and everything below it is found here, whether or not
PyFlink itself is installed. `pyflink.common.typeinfo` becomes a module that holds what `tamias.common.typeinfo` holds;
the classes in it are the same objects and say `tamias` of themselves, so no pickle of an object mentions the alias.

Every such module counts as a package. For `from pyflink.common import Name`, Python asks a package that has no such
name for a module `pyflink.common.Name`, and so comes by here: a name that Tamias lacks is refused with an ImportError
that says what there is instead, while `hasattr` and `getattr` work as on any module.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from tamias.program.pyflink_names import refusal
from tamias.slot.deployment_codec import call_in_slots

ALIAS = "pyflink"
API_VERSION = "2.3.0"  # of the PyFlink whose names these are
OFFERED = ("common", "datastream", "metrics", "util")  # the rooms that stand at PyFlink's paths


def install() -> None:
    """From now on, in this process and in the slots of its jobs, `pyflink` is Tamias.

    Raises:
        ImportError: PyFlink itself was imported before.
    """
    if any(isinstance(finder, AliasFinder) for finder in sys.meta_path):
        return
    before = sys.modules.get(ALIAS)
    if before is not None:
        where = getattr(before, "__file__", None)
        raise ImportError(f"pyflink is imported already, from {where}: call tamias.pyflink.install() before that")
    sys.meta_path.insert(0, AliasFinder())
    call_in_slots(install)


class AliasFinder(MetaPathFinder):
    """Finds `pyflink` and what is below it in Tamias."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module of that name, or None if it is none of `pyflink`."""
        if fullname != ALIAS and not fullname.startswith(ALIAS + "."):
            return None
        return ModuleSpec(fullname, AliasLoader(_behind(fullname)), is_package=True)


class AliasLoader(Loader):
    """Fills a module of the alias with the names of the module behind it; `pyflink` itself has its version alone."""

    def __init__(self, behind: ModuleType | None) -> None:
        self._behind = behind

    def exec_module(self, module: ModuleType) -> None:
        """Called by the import system with the empty module."""
        if self._behind is None:
            module.__dict__.update(__version__=API_VERSION, __all__=["__version__"])
            return
        names = {n: value for n, value in vars(self._behind).items() if n == "__all__" or not n.startswith("__")}
        module.__dict__.update(names, __doc__=self._behind.__doc__)


def _behind(fullname: str) -> ModuleType | None:
    """The module of Tamias that stands for one of PyFlink's, or None for `pyflink` itself.

    Raises:
        ModuleNotFoundError: there is none. The error does not name the module: for a `from` import Python takes one
            that does as "not a module", and says in words of its own that there is no such name.
    """
    parent, _, name = fullname.rpartition(".")
    if not parent:
        return None
    ours = "tamias" + fullname.removeprefix(ALIAS)
    siblings = _behind(parent)
    may_exist = name in OFFERED if siblings is None else hasattr(siblings, "__path__")
    if not may_exist or importlib.util.find_spec(ours) is None:
        raise ModuleNotFoundError(refusal(fullname, siblings))
    return importlib.import_module(ours)
