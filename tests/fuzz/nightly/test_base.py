"""The code before a change: what fails there too is not the change's doing."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamfuzz import corpus
from streamfuzz.case import Case, CaseFile
from streamfuzz.nightly import base as module
from streamfuzz.nightly.base import failing_on
from streamfuzz.spec import UsageError

HEAD = b'data: {"id":"i","object":"chat.completion.chunk","created":1,"model":"m","choices":'
STOP = b'[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}'
HELLO = Case("openai-chat", (HEAD + STOP + b"\n\ndata: [DONE]\n\n",))
WRONG = "from streamfuzz.demo import repaired\ndef read(chunks):\n    return {**repaired(chunks), 'finish': 'never'}\n"
RIGHT = "from streamfuzz.demo import repaired as read\n"


@pytest.fixture
def kept(project: Path) -> str:
    return str(corpus.save(project / "kept", CaseFile(HELLO)))


def checkout(project: Path, text: str, at: str = "mine_of_base.py") -> Path:
    file = project / "base" / at
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return project / "base"


@pytest.mark.parametrize("at", ["mine_of_base.py", "src/mine_of_base.py"])
def test_what_fails_on_the_base_is_told_by_its_signature(project: Path, kept: str, at: str) -> None:
    assert failing_on(checkout(project, WRONG, at), "mine_of_base:read", [kept]) == {"faithful.altered"}


def test_the_base_wins_over_the_working_directory(project: Path, kept: str) -> None:
    (project / "mine_of_base.py").write_text(WRONG)
    assert failing_on(checkout(project, RIGHT), "mine_of_base:read", [kept]) == set()


def test_a_target_that_the_base_lacks_is_new(project: Path, kept: str) -> None:
    assert failing_on(checkout(project, ""), "mine_of_base:read", [kept]) == set()


def test_the_configuration_of_the_base_names_its_targets(project: Path, kept: str) -> None:
    folder = checkout(project, WRONG)
    (folder / "streamfuzz.toml").write_text('[targets.mine]\ncall = "mine_of_base:read"\n')
    assert failing_on(folder, "mine", [kept]) == {"faithful.altered"}


def test_a_base_that_dies_is_told(project: Path, kept: str) -> None:
    folder = checkout(project, "import os\ndef read(chunks):\n    os._exit(7)\n")
    with pytest.raises(UsageError, match=r"could not be run on the code in .*; its findings are told as new"):
        failing_on(folder, "mine_of_base:read", [kept])


def test_a_base_that_takes_too_long_is_told(project: Path, kept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.01)
    with pytest.raises(UsageError, match="took more than 0 s on the code in"):
        failing_on(checkout(project, RIGHT), "mine_of_base:read", [kept])
