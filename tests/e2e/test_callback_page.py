"""The page behind a callback link, in a real browser."""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webdriver import WebDriver
from selenium.webdriver.support.wait import WebDriverWait
from werkzeug.serving import make_server
from werkzeug.wrappers import Request, Response

from steponce.aws import times
from steponce.local import LocalStack
from tests.patience import PATIENCE_SECONDS
from tests.unit.callback_links import CallbackLinks
from tests.workflow.faults import Faults
from tests.workflow.scene import Scene
from tests.workflow.waiting import Waiting

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
ALONE = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run")
QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-sync")

MEASURE = """
const of = (element, name) => getComputedStyle(element)[name];
const main = document.querySelector("main"), buttons = [...document.querySelectorAll("button")];
const boxes = buttons.map(button => button.getBoundingClientRect());
return {
  page: document.documentElement.scrollWidth,
  text: parseFloat(of(main, "fontSize")),
  heights: boxes.map(box => box.height),
  stacked: boxes[0].bottom < boxes[1].top,
  ground: of(document.body, "backgroundColor"),
  pairs: [
    [of(main, "color"), of(main, "backgroundColor")],
    [of(document.querySelector("dt"), "color"), of(main, "backgroundColor")],
    [of(buttons[0], "color"), of(buttons[0], "backgroundColor")],
    [of(buttons[1], "color"), of(main, "backgroundColor")],
  ],
};
"""
"""What a person sees, in numbers."""

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        not (CHROMIUM and DRIVER) and "STEPONCE_NEEDS_BROWSER" not in os.environ,
        reason="no chromium and chromedriver here; .ci/run installs them and runs this",
    ),
]


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[WebDriver]:
    """A headless browser with a profile of its own."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (*ALONE, *QUIET, f"--user-data-dir={tmp_path}"):
        options.add_argument(argument)
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.mark.parametrize(
    ("button", "status"),
    [("Confirm", "COMPLETED"), ("Decline", "FAILED")],
)
def test_a_person_answers_with_a_click(stack: LocalStack, browser: WebDriver, button: str, status: str):
    """Looking changes nothing, the button answers, and a second look says which answer arrived."""
    scene = Scene(stack, Faults())
    waiting = Waiting.begin(scene)
    link = waiting.link()

    browser.get(link)
    assert f"The step confirmation of the request {waiting.name} waits for an answer." == text(browser)
    assert ["Asked", "Answer by"] == terms(browser)
    assert "RUNNING" == scene.client.status(waiting.name).status

    browser.find_element(By.XPATH, f"//button[text()='{button}']").click()
    told = f"Your answer to the step confirmation of the request {waiting.name} has arrived. This is settled."
    shows(browser, told)
    assert status == scene.client.wait(waiting.name, timeout_seconds=100).status

    browser.get(link)
    assert "has its answer. This is settled." in text(browser)
    answered = waiting.record().answered_at
    assert answered is not None
    assert answered == browser.find_element(By.TAG_NAME, "time").get_attribute("datetime")
    assert {"Confirm": "Confirmed", "Decline": "Declined"}[button] in browser.page_source
    assert ["Answer", "Arrived"] == terms(browser)
    assert [] == browser.find_elements(By.TAG_NAME, "button")


@pytest.fixture
def links() -> CallbackLinks:
    """A step of a request with a long name, that waits for an hour; its links are served here."""
    links = CallbackLinks()
    record = links.table.items[links.step.id]
    record["requestId"] = {"S": "order-" + "9" * 200}
    record["expiresAt"] = {"S": times.to_text(times.after(times.now(), 3600))}
    return links


@pytest.fixture
def address(links: CallbackLinks) -> Iterator[str]:
    """Where the links are served, with the headers that they have on AWS."""

    @Request.application
    def answer(request: Request) -> Response:
        link, body = f"{request.path}?{request.query_string.decode()}", request.get_data(as_text=True)
        told = links.send(link, body, method=request.method, kind=request.mimetype)
        return Response(told.body, told.status, told.headers)

    server = make_server("127.0.0.1", 0, answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def test_the_page_is_readable_on_a_telephone_at_night_and_without_scripts(
    links: CallbackLinks, address: str, browser: WebDriver
):
    """Nothing is cut off, buttons are large enough for a thumb, and the colours are those of the night."""
    small = {"width": 320, "height": 568, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", small)
    browser.get(address + links.link())
    shown = browser.execute_script(MEASURE)

    assert 320 == shown["page"]
    assert shown["text"] >= 16
    assert ([48, 48], True) == (shown["heights"], shown["stacked"])
    assert "readable" == legible(shown)

    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    )
    night = browser.execute_script(MEASURE)
    assert luminance(night["ground"]) < 0.05 < 0.8 < luminance(shown["ground"])
    assert "readable" == legible(night)

    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    links.send(links.link(), {"outcome": "failure", "error": "Refused"})
    browser.find_element(By.XPATH, "//button[text()='Confirm']").click()
    shows(browser, "Another answer to the step")
    assert "Yours changes nothing." in text(browser)


def legible(shown: dict[str, Any]) -> str:
    """Whether each text differs enough from what is behind it. Source: WCAG 2.2, 1.4.3 (4.5 to 1)."""
    for pair in shown["pairs"]:
        dark, light = sorted(luminance(colour) for colour in pair)
        if (light + 0.05) / (dark + 0.05) < 4.5:
            return f"{pair} are too alike"
    return "readable"


def luminance(colour: str) -> float:
    """How light `rgb(…)` is, from 0 to 1. Source: WCAG 2.2, relative luminance."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def shows(browser: WebDriver, told: str) -> None:
    """
    Wait until the page's sentence begins so.

    While one page takes the place of another, Chrome's driver has several errors for what it cannot find.
    """
    WebDriverWait(browser, PATIENCE_SECONDS, ignored_exceptions=[WebDriverException]).until(
        lambda shown: text(shown).startswith(told)
    )


def text(browser: WebDriver) -> str:
    """The page's sentence, read in one call. An element that was found may be of a page that is gone."""
    return str(browser.execute_script("return document.getElementById('text').innerText"))


def terms(browser: WebDriver) -> list[str]:
    return [element.text for element in browser.find_elements(By.TAG_NAME, "dt")]
