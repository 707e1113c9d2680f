"""The engines by name."""

from __future__ import annotations

import importlib.util

import pytest

from streamfuzz.config import Recipe
from streamfuzz.engines import menu
from streamfuzz.engines.sweep import sweep
from streamfuzz.spec import UsageError

DEMO = Recipe("demo")


def test_the_sweep_is_always_there() -> None:
    assert menu.engine("sweep", DEMO) is sweep
    assert menu.installed()[0] == menu.NAMES[0] == "sweep"


def test_coverage_is_there_if_atheris_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(menu, "find_spec", lambda name: object())
    assert menu.installed() == menu.NAMES
    monkeypatch.setattr(menu, "find_spec", lambda name: None)
    assert menu.installed() == ("sweep",)


def test_without_atheris_asking_for_coverage_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamfuzz.engines.coverage.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'streamfuzz\[atheris\]'"):
        menu.engine("coverage", DEMO)


@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="needs Atheris")
def test_coverage_knows_how_the_target_is_made() -> None:
    engine = menu.engine("coverage", DEMO)
    assert engine.keywords["setup"].recipe == DEMO  # type: ignore[attr-defined]


def test_there_is_no_other() -> None:
    with pytest.raises(KeyError):
        menu.engine("luck", DEMO)
