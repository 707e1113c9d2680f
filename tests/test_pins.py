"""Upper bounds on dependencies, and the tests that tell when each may go."""

from __future__ import annotations

import ast
from importlib.metadata import distribution, requires, version

from hypothesis import given, settings
from hypothesis.internal.conjecture.utils import many
from hypothesis_jsonschema import from_schema
from packaging.requirements import Requirement
from packaging.version import Version

# hypothesis-jsonschema 0.23.1 draws objects with Hypothesis' private ``internal.conjecture.utils.many`` in a
# ``while elements.more()`` loop.  Hypothesis 6.170.10 keeps the class and removes ``more`` (``many`` is now a
# context manager to iterate over), so importing still works and drawing any object raises AttributeError.
PRIVATE_MODULE = "hypothesis.internal.conjecture"
REMOVED_METHOD = "more"
BREAKING_RELEASE = "6.170.10"

PIN_MAY_GO = """\
hypothesis-jsonschema {version} no longer calls many.more() from hypothesis.internal.conjecture.utils.  In
pyproject.toml require hypothesis-jsonschema>={version}, remove the bound <{bound} on hypothesis and the
comment above it, then delete the tests of this pin."""


def installed_trees(name: str) -> list[ast.Module]:
    """Parse every Python file that an installed distribution owns."""
    files = distribution(name).files or []
    return [ast.parse(file.read_text(encoding="utf-8")) for file in files if file.suffix == ".py"]


def imports_from(tree: ast.Module, module: str, name: str) -> bool:
    return any(
        isinstance(node, ast.ImportFrom) and node.module == module and any(a.name == name for a in node.names)
        for node in ast.walk(tree)
    )


def calls_method(tree: ast.Module, method: str) -> bool:
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method
        for node in ast.walk(tree)
    )


def test_hypothesis_stays_below_the_release_that_breaks_hypothesis_jsonschema():
    declared = [Requirement(line) for line in requires("streamfuzz") or []]
    (hypothesis,) = [r for r in declared if r.name == "hypothesis" and r.marker is None]
    assert BREAKING_RELEASE not in hypothesis.specifier
    assert Version(version("hypothesis")) < Version(BREAKING_RELEASE)
    assert hasattr(many, REMOVED_METHOD)


def test_the_hypothesis_pin_is_still_needed():
    still_needed = any(
        imports_from(tree, PRIVATE_MODULE, "utils") and calls_method(tree, REMOVED_METHOD)
        for tree in installed_trees("hypothesis-jsonschema")
    )
    assert still_needed, PIN_MAY_GO.format(version=version("hypothesis-jsonschema"), bound=BREAKING_RELEASE)


@settings(max_examples=10, deadline=None, database=None)
@given(from_schema({"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}))
def test_the_pinned_pair_draws_objects(drawn):
    assert isinstance(drawn["city"], str)
