"""The page behind a callback link, in a real browser."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webdriver import WebDriver
from selenium.webdriver.support.wait import WebDriverWait

from steponce.local import LocalStack
from tests.patience import PATIENCE_SECONDS
from tests.workflow.faults import Faults
from tests.workflow.scene import Scene
from tests.workflow.waiting import Waiting

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
ALONE = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run")
QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-sync")

pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER) and "STEPONCE_NEEDS_BROWSER" not in os.environ,
    reason="no chromium and chromedriver here; .ci/run installs them and runs this",
)


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
    [("Confirm", "COMPLETED"), pytest.param("Decline", "FAILED", marks=pytest.mark.full)],
)
def test_a_person_answers_with_a_click(stack: LocalStack, browser: WebDriver, button: str, status: str):
    """Looking changes nothing, the button answers, and a second look says that it is over."""
    scene = Scene(stack, Faults())
    waiting = Waiting.begin(scene)
    link = waiting.link()

    browser.get(link)
    assert f"confirmation of {waiting.name}" in text(browser)
    assert "RUNNING" == scene.client.status(waiting.name).status

    browser.find_element(By.XPATH, f"//button[text()='{button}']").click()
    WebDriverWait(browser, PATIENCE_SECONDS, ignored_exceptions=[StaleElementReferenceException]).until(
        lambda shown: "the answer has arrived" in text(shown)
    )
    assert status == scene.client.wait(waiting.name, timeout_seconds=100).status

    browser.get(link)
    assert "not waited for any more" in text(browser)
    assert [] == browser.find_elements(By.TAG_NAME, "button")


def text(browser: WebDriver) -> str:
    return browser.find_element(By.ID, "text").text
