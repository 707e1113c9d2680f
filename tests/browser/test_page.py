"""The report page in a real browser: quick with ten thousand findings, usable without a mouse, and not to be broken."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from time import perf_counter

import pytest

from streamfuzz.case import Case
from streamfuzz.happenings import Ended
from streamfuzz.legible import printable
from streamfuzz.report.page import Page, page
from streamfuzz.report.page_data import in_order
from streamfuzz.report.words import replay_command
from streamfuzz.result import Night, Result, Trend
from streamfuzz.spec import Delta, Snapshot
from streamfuzz.trace import Trace
from tests.fuzz.report.samples import HOSTILE, STARTED, big_night, empty_night, finding, night, reported


def made(of, **more):
    return page(of, lambda target, each: replay_command(target, each.path), **more)


def of(*found):
    return Night("batch", STARTED, 2.0, (Result("reader", "openai-chat", 1, 9, 2.0, 1.0, list(found)),))


def trace_of(target, case):
    items = (Delta("\ufffd"), Delta("\ufffd\U0001f600"), Snapshot({"text": HOSTILE}))
    return Trace(items, (3, 4, 7), "complete", {"text": HOSTILE}, None, 7, True, 0.0)


PAST = [
    Trend(datetime(2026, 11, day, tzinfo=timezone(timedelta(hours=1))), day * 1000, 9.0, day % 3, 2, 1, 0)
    for day in range(1, 30)
]


@pytest.fixture(scope="module")
def sample():
    """A page with everything on it."""
    return made(night(), past=PAST, trace_of=trace_of)


def open_all(opened):
    heads = opened.locator("#list .head[aria-expanded=false]")
    while heads.count():
        heads.first.click()


def said(opened):
    return opened.locator("#said").text_content()


# -- nothing gets out ---------------------------------------------------------------------------------------------


def test_hostile_texts_are_shown_as_text(visit, sample):
    opened = visit(sample)
    open_all(opened)
    for slider in opened.locator(".stepper input").all():
        slider.press("ArrowLeft")
    sentences = opened.locator("#list .what").evaluate_all("all => all.map(each => each.lastChild.data)")
    assert sentences == [printable(each.finding.sentence) for _, each in in_order(night())]
    assert any(printable(HOSTILE) in sentence for sentence in sentences)
    assert opened.locator("img, iframe, object, embed, base").count() == 0
    assert opened.locator("script").count() == 2
    seen = opened.evaluate("document.documentElement.textContent")
    assert not [c for c in "\u202e\u200d\u2028\x1b\x07\x00\ufffe" if c in seen]


def test_bytes_are_shown_as_they_are_and_in_their_order(visit):
    text = "a\u202eb\u05d0\u05d1e\u0301\u200d\U0001f600\x1b</script>\ufeff"
    case = Case("sse", (b"data: ", text.encode() + b"\xff\n\n"))
    opened = visit(made(of(reported(finding("", case=case)))))
    shown = opened.locator(".bytes .line:not(.title, .over) b").evaluate_all("all => all.map(b => b.textContent)")
    assert "".join(shown) == (
        "data: a\\u{202E}b\u05d0\u05d1e\\u{301}\\u{200D}\U0001f600\\x1B</script>\\u{FEFF}\\xFF\\n\\n"
    )
    places = opened.locator(".bytes b").evaluate_all("all => all.map(b => b.getBoundingClientRect().left)")[:20]
    assert places == sorted(places)


def test_a_megabyte_of_text_is_harmless(visit):
    mega = HOSTILE * (1_000_000 // len(HOSTILE))
    case = Case("openai-chat", (b"data: ", mega.encode("utf-8", "surrogatepass")))
    told = of(reported(finding(mega, expected=mega, got=mega + "x", case=case, target=mega), path=mega))
    html = made(told, trace_of=lambda target, case: Trace((Delta(mega),), (1,), "complete", mega, None, 2, True, 0.0))
    assert len(html) < 200_000
    opened = visit(html)
    heading = f"The stream: {len(case.data):,} bytes in 2 chunks, of which 4,096 from byte 0 are shown"
    assert opened.locator(".stream h4 > span").text_content() == heading
    assert opened.locator(".given code").first.text_content().startswith("\\x1B[2J")
    assert opened.evaluate("document.documentElement.scrollWidth") <= 1200


@pytest.mark.parametrize(
    "attack",
    [
        "document.body.append(Object.assign(document.createElement('script'), {text: 'window.owned = 1'}))",
        "document.body.innerHTML = '<img src=x onerror=\"window.owned = 1\">'",
        "document.body.append(Object.assign(document.createElement('img'), {src: 'http://127.0.0.1:9/x.png'}))",
        "document.body.setAttribute('onclick', 'window.owned = 1'); document.body.click()",
        "fetch('http://127.0.0.1:9/x')",
    ],
)
def test_what_is_put_into_the_page_cannot_run_or_load(visit, attack):
    opened = visit(made(empty_night()))
    opened.evaluate(f"async () => {{ try {{ await eval({attack!r}) }} catch {{}} }}")
    opened.wait_for_timeout(50)
    assert opened.evaluate("window.owned") is None
    assert [trouble for trouble in visit.troubles if not trouble.startswith("console: ")] == []
    assert visit.troubles  # the browser said that it was refused
    visit.troubles.clear()


# -- ten thousand -------------------------------------------------------------------------------------------------


def test_ten_thousand_findings_open_in_two_seconds(visit, tmp_path):
    path = tmp_path / "big.html"
    Page(path)(Ended(big_night(10_000)))
    assert path.stat().st_size < 5_000_000
    started = perf_counter()
    opened = visit(path)
    assert perf_counter() - started < 2
    assert opened.locator("#shown").text_content() == "10,000 findings"
    assert opened.locator("#list > li").count() == 50
    opened.locator("#search").fill("cause number 4321")
    assert opened.locator("#shown").text_content() == "1 of 10,000 findings"
    opened.locator("#list .head").click()
    assert "faithful.lost: cause number 4321" in opened.locator("#list .about").text_content()


# -- without a mouse ----------------------------------------------------------------------------------------------


def focused(opened):
    return opened.evaluate("document.activeElement.className || document.activeElement.id")


def test_a_reader_gets_to_the_findings_by_keyboard(visit, sample):
    opened = visit(sample)
    opened.keyboard.press("Tab")
    assert opened.evaluate("document.activeElement.textContent") == "To the findings"
    opened.keyboard.press("Enter")
    for _ in range(30):
        opened.keyboard.press("Tab")
        if focused(opened) == "head":
            break
    head = opened.locator("#list .head").first
    assert head.get_attribute("aria-expanded") == "true"
    opened.keyboard.press("Enter")
    assert head.get_attribute("aria-expanded") == "false"
    opened.keyboard.press("Space")
    assert opened.locator("#list li").first.locator(".body").is_visible()
    outline = opened.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_arrow_keys_walk_the_bytes_and_tell_what_each_is(visit, sample):
    opened = visit(sample)
    opened.locator(".bytes").first.focus()
    opened.keyboard.press("ArrowRight")
    assert said(opened) == "byte 0, hex 3A, U+003A : \u00b7 comment \u00b7 chunk 1"
    opened.keyboard.press("End")
    assert said(opened).startswith("byte 263, hex 0A, U+000A \u00b7 event 3, blank line")
    opened.keyboard.press("ArrowLeft")
    assert said(opened).startswith("byte 262, hex 0A, U+000A \u00b7 event 3, line end of the data field")


def test_stepping_tells_what_the_target_had_given_out(visit, sample):
    opened = visit(sample)
    given, words = opened.locator(".given").first, opened.locator(".stepper span").first
    assert "The target ended as complete" in given.text_content()
    opened.locator(".bytes").first.focus()
    for _ in range(3):
        opened.keyboard.press("ArrowUp")
    assert words.text_content() == "chunk 4 of 7"
    assert given.locator("li").all_text_contents() == ["chunk 3text \ufffd", "chunk 4text \ufffd\U0001f600"]
    assert said(opened).startswith("After 4 chunks of 7 (174 bytes, cut between frames). The target gave out text")
    opened.get_by_label("One chunk back").first.click()
    assert words.text_content() == "chunk 3 of 7"
    later = opened.locator(".bytes").first.locator("b.later").first
    assert later.text_content() == "\\xA0"
    slider = opened.locator(".stepper input").first
    slider.press("Home")
    assert given.text_content() == "Given out after chunk 0nothing"
    assert opened.get_by_label("One chunk back").first.is_disabled()
    slider.press("End")
    assert said(opened).endswith("The target ended as complete.")


def test_pointing_at_a_byte_names_its_place(visit, sample):
    opened = visit(sample)
    opened.locator(".bytes b.cut.split").first.hover()
    told = opened.locator(".readout").first.text_content()
    assert told.startswith(
        "byte 141, hex A0, byte 3 of 3 of U+4F60 \u4f60 \u00b7 event 1, value of the data field, byte "
    )
    assert told.endswith("chunk 4 \u00b7 cut here inside a 3-byte character")
    assert opened.locator(".bytes").first.locator(".mark").all_text_contents() == [":", " ", "h", "i", "\\n"]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 360)])
def test_an_accessibility_check_finds_nothing(visit, sample, scheme, width):
    from axe_playwright_python.sync_playwright import Axe

    # The checker may be put into the page although its policy would forbid that.
    opened = visit(sample, color_scheme=scheme, viewport={"width": width, "height": 800}, bypass_csp=True)
    for n in (3, 4, 6, 9):  # damage, hostile texts, two streams, frames
        opened.locator("#list .head").nth(n - 1).click()
    opened.locator("details summary").first.click()
    violations = Axe().run(opened).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"][:200]) for each in violations] == []


# -- the page as a page -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [360, 800])
def test_a_narrow_window_needs_no_scrolling_sideways(visit, sample, width):
    opened = visit(sample, viewport={"width": width, "height": 700})
    open_all(opened)
    assert opened.evaluate("document.documentElement.scrollWidth") == width


def test_findings_are_found_by_label_target_and_word(visit, sample):
    opened = visit(sample)
    shown = opened.locator("#shown")
    assert shown.text_content() == "12 findings"
    opened.locator("#filter .tag.flaky").click()
    assert shown.text_content() == "2 of 12 findings"
    opened.locator("#filter .tag.expired").click()
    assert shown.text_content() == "3 of 12 findings"
    opened.locator("#target").select_option("reader")
    assert shown.text_content() == "2 of 12 findings"
    opened.locator("#search").fill("CR  line")
    assert shown.text_content() == "1 of 12 findings"
    opened.locator("#search").press("Enter")
    assert opened.locator("#list .what").text_content().startswith("expired")


def test_goals_are_filtered(visit, sample):
    opened = visit(sample)
    opened.get_by_label("only those never reached").check()
    shown = opened.locator("#goals tbody tr:not(.group):visible")
    assert shown.count() == shown.locator(".heat0").locator("xpath=..").count() > 0
    opened.locator("#goal-search").fill("tool call in")
    assert opened.locator("#goal-shown").text_content() == "1 shown"
    assert opened.locator("#goals tbody:visible").count() == 1


def test_pages_are_turned_and_a_finding_has_an_address(visit):
    html = made(big_night(120))
    opened = visit(html, anchor="#finding-77")
    assert opened.locator("#finding-77 .body").is_visible()
    assert opened.locator("#pager span").text_content() == "51 to 100 of 120"
    opened.locator("#after").click()
    assert opened.locator("#list > li").count() == 20
    assert opened.locator("#after").is_disabled()
    assert focused(opened) == "findings"
    opened.evaluate("location.hash = '#finding-3'")
    opened.locator("#finding-3 .body").wait_for()


def test_the_command_is_copied(visit, sample):
    opened = visit(sample, permissions=["clipboard-read", "clipboard-write"])
    opened.locator(".copy button").last.click()
    opened.get_by_text("Copied", exact=True).first.wait_for()
    assert opened.evaluate("navigator.clipboard.readText()") == "streamfuzz replay reader corpus/reader/1f.json"


def test_the_theme_follows_the_system_until_it_is_chosen(visit, sample):
    opened = visit(sample, color_scheme="dark")
    paper = "getComputedStyle(document.body).backgroundColor"
    dark = opened.evaluate(paper)
    opened.locator("#theme").click()
    assert opened.locator("#theme").text_content() == "Theme: light"
    light = opened.evaluate(paper)
    assert light != dark
    opened.locator("#theme").click()
    assert opened.evaluate(paper) == dark
    opened.emulate_media(media="print")
    assert opened.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"


def test_on_paper_all_findings_are_open_and_no_controls_are_there(visit, sample):
    opened = visit(sample)
    opened.evaluate("dispatchEvent(new Event('beforeprint'))")
    opened.emulate_media(media="print")
    assert opened.locator("#list .body").count() == 12
    assert opened.locator("#list .what").first.bounding_box()["height"] < 60
    assert not opened.locator("#filter").is_visible()
    assert not opened.locator(".stepper").first.is_visible()


def test_a_long_stream_in_small_chunks_can_be_walked_to_its_end(visit):
    data = b": " + b"x" * 30_000 + b"\ndata: {}\n\n"
    case = Case("openai-chat", tuple(data[n : n + 1] for n in range(len(data))))
    opened = visit(made(of(reported(finding("", case=case)))))
    assert "of which 4,096 from byte 0 are shown" in opened.locator(".stream h4").text_content()
    opened.locator(".bytes").focus()
    opened.keyboard.press("End")
    assert said(opened).startswith("byte 4,095, hex 78, U+0078 x \u00b7 comment \u00b7 chunk 4,096")


def test_an_empty_night_has_a_page_too(visit):
    opened = visit(made(empty_night()))
    assert opened.locator("h1").text_content() == "Nothing to act on in 1,000 cases."
    assert opened.locator("#findings .empty").text_content() == "Nothing was found."
