"""The pages of the reference leave nothing out. tests/test_docs.py compares them with the code."""

import importlib
import pkgutil
import re
from types import ModuleType

import ekorn.common
import ekorn.dataset
import ekorn.datastream
import ekorn.queryable
import ekorn.state_processor.spark
import ekorn.table
import ekorn.testing
from ekorn import errors
from ekorn.errors import EkornError
from tests.manual import errors_page
from tests.manual.blocks import DOCS

ON_PYFLINK_PATHS = [ekorn.common, ekorn.dataset, ekorn.datastream, ekorn.table]
OWN = [ekorn.queryable, ekorn.state_processor, ekorn.state_processor.spark, ekorn.testing]


def test_the_page_of_errors_has_every_error():
    listed = errors_page.page()
    public = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, EkornError)]
    assert len(public) > 40
    assert not [each.__name__ for each in public if f"### {each.__name__}\n" not in listed and each is not EkornError]


def test_the_pages_of_the_api_have_every_public_name():
    shown = {
        id(each) for page in (DOCS / "reference" / "api").glob("*.md") for each in _shown_on(page.read_text("utf-8"))
    }
    modules = [*OWN, *(module for package in ON_PYFLINK_PATHS for module in _modules_below(package))]
    public = {f"{module.__name__}.{name}": getattr(module, name) for module in modules for name in module.__all__}
    assert len(public) > 500
    assert not [name for name, each in public.items() if id(each) not in shown and not isinstance(each, ModuleType)], (
        "name the module in docs/reference/api"
    )


def _shown_on(page: str) -> list[object]:
    found: list[object] = []
    for name in re.findall(r"^::: ([\w.]+)$", page, re.MULTILINE):
        parent, _, last = name.rpartition(".")
        each = getattr(importlib.import_module(parent), last, None)
        module = importlib.import_module(name) if each is None else each
        found += [getattr(module, name) for name in module.__all__] if isinstance(module, ModuleType) else [each]
    return found


def _modules_below(package: ModuleType) -> list[ModuleType]:
    names = [each.name for each in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]
    modules = [package, *map(importlib.import_module, names)]
    return [module for module in modules if hasattr(module, "__all__")]
