"""A real browser, and pages opened in it that must neither ask for anything nor complain."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
SWITCHES = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")  # while it is there an event loop runs, which other tests cannot do with
def browser() -> Iterator[Any]:
    """Chromium; the only reason to skip these tests is that there is none."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(f"no browser on PATH: {', '.join(NAMES)}")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=list(SWITCHES), env=dict(os.environ))
        yield launched
        launched.close()


@pytest.fixture
def visit(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens HTML in the browser.  At the end, nothing may have been asked for, shown in a dialog, or complained of."""
    contexts, troubles = [], []

    def visit(html: str | Path, anchor: str = "", **options: Any) -> Any:
        if isinstance(html, str):
            path = tmp_path / f"{len(contexts)}.html"
            path.write_text(html, encoding="utf-8")
        else:
            path = html
        context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(5000)
        url = path.as_uri()

        def dismiss(dialog: Any) -> None:
            troubles.append(f"dialog: {dialog.message}")
            dialog.dismiss()

        def route(route: Any) -> None:
            if route.request.url.partition("#")[0] == url:
                route.continue_()
            else:
                troubles.append(f"request: {route.request.url}")
                route.abort()

        context.route("**/*", route)
        page.on("dialog", dismiss)
        page.on("console", lambda message: troubles.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        page.goto(url + anchor)
        page.wait_for_selector("#list .body, .empty")
        return page

    visit.troubles = troubles  # type: ignore[attr-defined]
    yield visit
    for context in contexts:
        context.close()
    assert troubles == []
