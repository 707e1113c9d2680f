"""The pytest plugin: corpus folders as tests, and one line that makes a fuzz test of a parser.

In ``pyproject.toml``::

    [tool.pytest.ini_options]
    testpaths = ["tests", "corpus"]
    streamfuzz_corpora = ["corpus/chat = mypackage.stream:parse"]

Each case file below ``corpus/chat`` is then a test that fails with the explanation of what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .replay import Replayed


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ini option that says which target a corpus folder is for."""
    parser.addini(
        "streamfuzz_corpora",
        "corpus folders and their targets, as 'folder = module:attribute' or 'folder = name'",
        type="linelist",
        default=[],
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse lines of the ini option that say nothing, before any test runs."""
    list(_corpora(config))


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect the case files of configured corpus folders."""
    if file_path.suffix != ".json":
        return None
    for folder, spec in _corpora(parent.config):
        if file_path.is_relative_to(folder):
            return _CaseFile.from_parent(parent, path=file_path, spec=spec)
    return None


def _corpora(config: pytest.Config) -> Iterator[tuple[Path, str]]:
    for line in config.getini("streamfuzz_corpora"):
        folder, equals, spec = line.partition("=")
        if not equals or not folder.strip() or not spec.strip():
            raise pytest.UsageError(f"streamfuzz_corpora: {line!r} is not of the form 'folder = module:attribute'")
        yield config.rootpath / folder.strip(), spec.strip()


class CaseFailedError(Exception):
    """A target broke an invariant on a kept case."""


class _CaseFile(pytest.File):
    spec: str

    def __init__(self, *, spec: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.spec = spec

    def collect(self) -> Iterator[pytest.Item]:
        yield _CaseItem.from_parent(self, name=self.path.stem, spec=self.spec)


class _CaseItem(pytest.Item):
    def __init__(self, *, spec: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.spec = spec

    def runtest(self) -> None:
        from . import config, corpus
        from .nightly.safely import replay_safely

        file = corpus.open_case(self.path)
        target = config.for_case(self.spec, file.case, self.path)
        for replayed in replay_safely(self.spec, target, [(self.path, file)]):
            if replayed.status in ("fail", "flaky"):
                raise CaseFailedError(explanation(replayed))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        from .spec import UsageError

        if isinstance(excinfo.value, (CaseFailedError, UsageError)):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"case {self.name}"


def explanation(replayed: Replayed) -> str:
    """The sentence and the ruler of each finding of a replayed case."""
    from . import ruler

    lines: list[str] = []
    for finding in replayed.findings:
        lines += [finding.sentence, f"[{finding.signature}]", "", *ruler.draw(finding.case), ""]
    if replayed.judge_differs:
        lines.append(replayed.judge_differs)
    return "\n".join(lines)
