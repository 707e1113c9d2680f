"""`streamfuzz show`: a case at any width, in sentences or as a picture, and what a target did with it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.cells import cell_len

from streamfuzz import corpus, show_command
from streamfuzz.case import PROBES, Case, CaseFile
from streamfuzz.report.console import Console
from streamfuzz.ruler.page import ASCII, UNICODE, Page
from streamfuzz.ruler.paint import painted
from streamfuzz.show_command import look, page_of, show
from streamfuzz.spec import UsageError
from streamfuzz_strategies.stream import Event

HEAD = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":['
HELLO = HEAD + '{"index":0,"delta":{"content":"h你"},"finish_reason":null}]}\n\n'.encode()
STOP = HEAD + b'{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
WHOLE = HELLO + STOP + DONE
INSIDE = WHOLE.index("你".encode()) + 1
SOUND = Case("openai-chat", (HELLO, STOP, DONE))
DIVIDED = Case("openai-chat", (WHOLE[:INSIDE], WHOLE[INSIDE:]))

TARGETS = '''
from streamfuzz.spec import Delta, Incomplete


def frames(chunks):
    """Gives out frames, and loses the second."""
    data = b"".join(chunks).decode()
    for n, block in enumerate(data.split("\\n\\n")[:-1]):
        if n != 1:
            yield {"data": block.removeprefix("data: ")}


def streaming(chunks):
    for chunk in chunks:
        yield Delta("a")
        yield Delta("\\x1b[2J")
    return {"text": "a", "choices_": 1, "finish": "stop"}


def unfinished(chunks):
    list(chunks)
    return Incomplete({"text": "\\u202e"})


def two(chunks):
    list(chunks)
    return {"choices": [{"text": "h你"}, {"text": "b"}], "usage": None}


def oops(chunks):
    list(chunks)
    raise ValueError("no\\x07")


def hangs(chunks):
    while True:
        pass


def value(chunks):
    list(chunks)
    return {"a": 2}
'''


@pytest.fixture
def shown(project: Path):
    """Runs `show` on a case in an empty project."""
    (project / "parsers.py").write_text(TARGETS)

    def run(case, *arguments, why="kept by hand"):
        path = corpus.save(project / "kept", CaseFile(case, why)) if isinstance(case, Case) else case
        done = CliRunner().invoke(show, [str(path), *map(str, arguments)])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == 0, done.output
        return done.output

    return run


def test_a_case_is_drawn_with_the_word_of_the_judge(shown):
    out = shown(SOUND)
    assert out.startswith("chunk  byte\n    1     0  data: ")
    assert out.endswith("\n\nThe judge: a complete message\nKept because: kept by hand\n")


@pytest.mark.parametrize("probe", PROBES)
def test_every_kind_of_case_is_drawn_and_told(shown, probe):
    chunks = () if probe.startswith("growth") else SOUND.chunks
    other = SOUND.chunks if probe in ("isolated", "resliced") else ()
    case = Case("openai-chat", chunks, probe=probe, other=other)
    for arguments in ((), ("--linear",)):
        out = shown(case, "--target", "demo-repaired", *arguments)
        assert out.startswith("demo-repaired does nothing wrong with it.\n")
        assert ('"content":"h' in out) == bool(chunks)


def test_what_a_target_did_stands_beside_what_it_should_have(shown):
    out = shown(DIVIDED, "--target", "demo")
    assert out.startswith("demo alters the text: '你' becomes '���' because of a cut inside a 3-byte character.\n\n")
    assert re.search(r"^text +\"h���\" +\"h你\" +differs$", out, re.MULTILINE)
    assert re.search(r"^finish +\"stop\" +\"stop\"$", out, re.MULTILINE)
    assert out.count("differs") == 1


def test_causes_are_pointed_at(shown):
    case = Case("openai-chat", (WHOLE.replace(b"\n", b"\r"),))
    assert "^^ here" in shown(case, "--target", "demo")


def test_after_each_chunk_stands_what_was_given_out(shown):
    lines = [line.strip() for line in shown(SOUND, "--target", "parsers:streaming").splitlines()]
    assert lines.count(r"→ gave text 'a\x1b[2J'") == 3
    starts = [n for n, line in enumerate(lines) if re.match(r"[123] +\d+  data", line)]
    gave = [n for n, line in enumerate(lines) if line.startswith("→ gave")]
    assert starts[0] < gave[0] < starts[1] < gave[1] < starts[2] < gave[2]


def test_a_lost_frame_stands_beside_the_one_that_was_expected(shown):
    case = Case("sse", (b"data: a\n\ndata: b\n\ndata: c\n\n",))
    out = shown(case, "--target", "parsers:frames", "--provider", "sse")
    assert re.search(r"^frame 1 +as expected$", out, re.MULTILINE)
    assert re.search(r'^frame 2 +nothing +{"data":"b"} +differs$', out, re.MULTILINE)
    assert re.search(r"^frame 3 +as expected$", out, re.MULTILINE)


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("unfinished", r'text +"\\u202e" +"h你" +differs'),
        ("oops", r'outcome +ValueError +complete\ntext +nothing +"h你" +differs'),
        ("two", r'text of choice 0 +"h你" +"h你"\n.*choice 1'),
    ],
)
def test_other_ends_stand_beside_what_was_expected_too(shown, target, says):
    out = shown(SOUND, "--target", f"parsers:{target}")
    assert re.search(says, out, re.DOTALL)
    assert all(line.isprintable() for line in out.splitlines())


def test_a_target_that_hangs_is_run_as_often_as_needed_and_no_more(shown, project):
    (project / "streamfuzz.toml").write_text(
        '[targets.slow]\ncall = "parsers:hangs"\nprovider = "openai-chat"\ntimeout = 0.2\n'
    )
    out = shown(SOUND, "--target", "slow")
    assert out.startswith("slow hangs: ")
    assert re.search(r"^outcome +hang +complete *$", out, re.MULTILINE)


def test_a_value_stands_beside_the_one_that_was_expected(shown):
    out = shown(Case("json", ('{"a":1}',), "text"), "--target", "parsers:value")
    assert re.search(r'^value +{"a":2} +{"a":1} +differs$', out, re.MULTILINE)


@pytest.mark.parametrize("target", ["demo", "parsers:streaming", "parsers:oops", "parsers:two"])
@pytest.mark.parametrize("plain", [False, True])
def test_no_line_is_wider_than_the_page(shown, project, target, plain):
    path = corpus.save(project, CaseFile(DIVIDED, "why " * 30))
    found = look(corpus.open_case(path), target, path)
    for width in range(20, 130, 7):
        lines = list(page_of(found, Page(width, ASCII if plain else UNICODE, plain, 300)))
        assert max(cell_len(line.text) for line in lines) <= width
        assert [painted(line).plain for line in lines] == [line.text for line in lines]
        assert all(line.text.isascii() for line in lines) or not plain


def test_colours_say_nothing_that_words_do_not(shown, project, monkeypatch):
    plain = shown(DIVIDED, "--target", "demo")
    monkeypatch.setattr(show_command, "Console", lambda stream: Console(stream, colour=True))
    coloured = shown(DIVIDED, "--target", "demo")
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == plain


def test_a_long_stream_loses_its_middle_unless_all_is_asked_for(shown, tmp_path):
    recorded = tmp_path / "long.sse"
    recorded.write_bytes(b'data: {"n":1}\n\n' * 900)
    assert re.search(r"… \d+ bytes …", shown(recorded, "--provider", "sse"))
    assert shown(recorded, "--provider", "sse", "--all").count('data: {"n":1}') == 900
    assert "bytes are left out here" in shown(recorded, "--provider", "sse", "--linear")
    assert shown(recorded, "--provider", "sse", "--all", "--linear").count('data: {"n":1}') == 900


def test_some_hundred_lines_are_shown_in_full(shown, tmp_path):
    recorded = tmp_path / "some.sse"
    recorded.write_bytes(b"data: 1\n\n" * 140)
    assert shown(recorded, "--provider", "sse").count("data: 1") == 140


def test_sentences_say_what_differs(shown):
    lines = shown(DIVIDED, "--target", "demo", "--linear").splitlines()
    assert lines[0].startswith("demo alters the text")
    assert 'Text: given "h���"; expected "h你"' in lines
    assert lines[-2:] == ["The judge: a complete message", "Kept because: kept by hand"]


def test_a_picture_is_written_whole_and_said_to_be(shown, tmp_path):
    place = tmp_path / "case.svg"
    place.write_text("old")
    assert shown(DIVIDED, "--svg", place) == f"wrote {place}\n"
    assert place.read_text(encoding="utf-8").startswith("<svg ")
    assert [path.name for path in tmp_path.iterdir() if path.suffix in (".svg", ".part")] == ["case.svg"]


def test_what_a_picture_says_of_itself_is_escaped(shown, tmp_path):
    shown(SOUND, "--svg", tmp_path / "case.svg", why="\u202e<script>\x1b")
    document = (tmp_path / "case.svg").read_text(encoding="utf-8")
    assert r'<title id="title">\u{202E}&lt;script&gt;\x1B</title>' in document
    assert document.isprintable() or set(filter(lambda c: not c.isprintable(), document)) == {"\n"}


def test_a_picture_that_cannot_be_written_is_an_error_that_says_so(shown, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"cannot write .*file/case\.svg: .*; choose another place"):
        shown(DIVIDED, "--svg", tmp_path / "file" / "case.svg")


def test_an_unknown_provider_is_an_error(shown, tmp_path):
    with pytest.raises(UsageError, match="unknown provider 'openia'"):
        shown(SOUND, "--provider", "openia")


def test_a_case_of_events_is_shown_with_what_the_target_made_of_it(shown):
    event = Event({"model": "m", "message": {"role": "assistant", "content": "a"}, "done": False})
    out = shown(Case("ollama", (event,), "events"), "--target", "parsers:oops")
    assert out.index("event\n    1  {") < out.index("→ ended with ValueError: no\\x07")
