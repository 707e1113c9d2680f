"""What all tests share: which of them are slow, and which are not traced for coverage."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from coverage import Coverage

HERE = Path(__file__).parent
SLOW = (
    "strategies/providers",
    "strategies/framing",
    "strategies/test_dialects.py",
    "strategies/test_judge.py",
    "strategies/test_mutations.py",
    "fuzz/nightly",
    "fuzz/report",
    "fuzz/targets",
    "fuzz/test_campaign.py",
    "fuzz/test_cli.py",
    "fuzz/test_cli_bad_input.py",
    "fuzz/test_corpus_commands.py",
    "fuzz/test_coverage.py",
    "fuzz/test_coverage_command.py",
    "fuzz/test_coverage_input.py",
    "fuzz/test_coverage_mutator.py",
    "fuzz/test_dialects.py",
    "fuzz/test_examples.py",
    "fuzz/test_explain.py",
    "fuzz/test_linear.py",
    "fuzz/test_oracles.py",
    "fuzz/test_probes.py",
    "fuzz/test_pytest_plugin.py",
    "fuzz/test_ruler.py",
    "fuzz/test_show_command.py",
    "fuzz/test_shrink.py",
    "fuzz/test_svg.py",
    "fuzz/test_sweep.py",
    "test_corpus_folder.py",
)
"""Folders and files whose tests take more than a minute or so in all."""

UNTRACED = (
    "browser",
    "fuzz/nightly/test_command.py",
    "fuzz/nightly/test_kills.py",
    "fuzz/nightly/test_workers.py",
    "fuzz/test_init_command.py",
    "zoo/test_zoo.py",
)
"""Whole jobs with a time of their own and long searches: the tracer of coverage would make them three times as slow."""


@cache
def is_one_of(path: Path, places: tuple[str, ...]) -> bool:
    return any(path.is_relative_to(HERE / place) for place in places)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if is_one_of(item.path, UNTRACED):
            item.add_marker(pytest.mark.untraced)
        if is_one_of(item.path, SLOW + UNTRACED):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: item.get_closest_marker("untraced") is None)  # what takes longest comes first


@pytest.fixture(autouse=True)
def tracing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let coverage, if it is measured, look away while an untraced test and its processes run."""
    tracer = Coverage.current() if request.node.get_closest_marker("untraced") else None
    if tracer is None:
        yield
    else:
        monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)
        tracer.stop()
        yield
        tracer.start()
