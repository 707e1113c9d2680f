"""The rules of the house: which way the parts depend, how long a module may be, and what the docs name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from streamfuzz_strategies.providers import NAMES, get
from streamfuzz_strategies.rules import Rule

ROOT = Path(__file__).parents[1]
SOURCE_ROOTS = (ROOT / "strategies", ROOT / "fuzz")
LINES_BELOW = 500

JUDGE = "streamfuzz_strategies.judge"
MUTATIONS = "streamfuzz_strategies.mutations"
ENGINES = "streamfuzz.engines"
REPORT = "streamfuzz.report"
CLI = "streamfuzz.cli"
NIGHTLY = "streamfuzz.nightly"


@cache
def modules() -> Mapping[str, Path]:
    """Every module of both packages by its dotted name."""
    found = {}
    for root in SOURCE_ROOTS:
        for path in root.rglob("*.py"):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(tree: ast.Module, name: str, *, is_package: bool, known: Mapping[str, Path]) -> Iterator[str]:
    """The modules that a module imports, wherever in it, as absolute names.

    ``from package import name`` is the submodule where ``known`` has one, else the package itself.
    """
    package = name.split(".") if is_package else name.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                submodule = f"{source}.{alias.name}"
                yield submodule if submodule in known else source


@cache
def imports_of(name: str) -> frozenset[str]:
    path = modules()[name]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(imported(tree, name, is_package=path.name == "__init__.py", known=modules()))


def is_within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def within(package: str) -> list[str]:
    return sorted(name for name in modules() if is_within(name, package))


def chains_to(starts: list[str], forbidden: tuple[str, ...]) -> list[str]:
    """The import chains, written ``a > b > c``, on which a start module reaches a forbidden one."""
    chains = []
    for start in starts:
        seen, waiting = {start}, [(start,)]
        while waiting:
            chain = waiting.pop(0)
            for name in sorted(imports_of(chain[-1])):
                if any(is_within(name, package) for package in forbidden):
                    chains.append(" > ".join((*chain, name)))
                elif name in modules() and name not in seen:
                    seen.add(name)
                    waiting.append((*chain, name))
    return chains


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import a.b", {"a.b"}),
        ("from a import b", {"a.b"}),
        ("from a import thing", {"a"}),
        ("from . import b", {"a.b"}),
        ("from .c import thing", {"a.c"}),
        ("from .. import thing", {""}),
        ("def f():\n    from a.c import late", {"a.c"}),
        ("if TYPE_CHECKING:\n    import a.c as alias", {"a.c"}),
        ("text = 'import a.b'", set()),
    ],
)
def test_imports_are_read_from_the_syntax(source, expected):
    known = dict.fromkeys(("a", "a.b", "a.c"), Path())
    assert set(imported(ast.parse(source), "a.x", is_package=False, known=known)) == expected


def test_a_package_resolves_relative_imports_from_itself():
    known = dict.fromkeys(("a", "a.x", "a.x.b"), Path())
    assert set(imported(ast.parse("from . import b"), "a.x", is_package=True, known=known)) == {"a.x.b"}


def test_strategies_know_nothing_of_targets():
    assert chains_to(within("streamfuzz_strategies"), ("streamfuzz",)) == []


@pytest.mark.skipif(JUDGE not in modules(), reason="there is no judge yet")
def test_the_judge_reads_bytes_and_not_how_they_were_made():
    assert chains_to([JUDGE], (MUTATIONS, ENGINES)) == []


@pytest.mark.skipif(not within(ENGINES), reason="there are no engines yet")
def test_engines_do_not_know_who_listens():
    assert chains_to(within(ENGINES), (REPORT, CLI, NIGHTLY)) == []


def test_a_job_does_not_know_who_listens():
    jobs = [name for name in within(NIGHTLY) if name != f"{NIGHTLY}.command"]
    assert chains_to(jobs, (REPORT, CLI)) == []


def test_modules_are_short():
    paths = [*modules().values(), *(ROOT / "tests").rglob("*.py")]
    lengths = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8").count("\n") for path in paths}
    assert {path: length for path, length in lengths.items() if length >= LINES_BELOW} == {}


def test_modules_say_what_they_are():
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in modules().items()}
    assert [name for name, tree in trees.items() if not ast.get_docstring(tree)] == []


def rule_ids() -> set[str]:
    """Every rule that a provider's tables or a module's constants hold."""
    found = {rule.id for name in NAMES for rule in get(name).rules}
    for name in within("streamfuzz_strategies"):
        for value in vars(import_module(name)).values():
            values = value if isinstance(value, tuple) else (value,)
            found.update(item.id for item in values if isinstance(item, Rule))
    return found


def documents() -> list[Path]:
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def mentions(markdown: str, families: set[str]) -> set[str]:
    """The rule ids that a document names: inline code of dotted lower-case words that begins as a rule does.

    A function or a file may look alike, so those are told by their brackets (``json.loads()``) or ending.
    """
    spans = {
        child.content
        for token in MarkdownIt().parse(markdown)
        for child in token.children or []
        if child.type == "code_inline"
    }
    dotted = {span for span in spans if re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9_-]+)+", span)}
    files = (".py", ".json", ".md")
    return {span for span in dotted if span.split(".")[0] in families and not span.endswith(files)}


def test_a_rule_is_mentioned_as_inline_code():
    text = "Breaks `sse.utf8.invalid`, see `sse.py`, `sse.decode()`, `o.thing`, sse.plain\n\n    sse.block\n"
    assert mentions(text, {"sse"}) == {"sse.utf8.invalid"}


@pytest.mark.skipif(not (ROOT / "README.md").stat().st_size, reason="there are no docs yet")
def test_documents_name_only_rules_that_exist():
    known = rule_ids()
    families = {rule.split(".")[0] for rule in known}
    unknown = {
        path.name: missing
        for path in documents()
        if (missing := mentions(path.read_text(encoding="utf-8"), families) - known)
    }
    assert unknown == {}
