"""The page by the link of `serve --phone`, over TLS with the certificate that the server made."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, Playwright, expect

from tests.browser.conftest import chromium
from tests.server.serving import free_port
from tests.server.test_phone import ADDRESS, phoned

pytestmark = pytest.mark.browser

NO_SOCKETS = """
const Before = WebSocket;
window.WebSocket = class extends Before { constructor(url) { super(`${url}/nowhere`); } };
"""
"""Stands in for Safari, which opens no websocket with a certificate that it does not trust."""


@pytest.fixture(scope="module")
def link(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What the QR code of a running server holds."""
    folder, port = tmp_path_factory.mktemp("phone"), free_port()
    with phoned(folder, port) as terminal:
        key = (folder / "voiceloop" / "phone" / "key").read_text().strip()
        yield f"https://{ADDRESS}:{port}/#key={key}"
        assert "Traceback" not in terminal.shown


@pytest.fixture
def phone(playwright: Playwright) -> Iterator[BrowserContext]:
    """A browser whose user has gone on after the warning."""
    browser = playwright.chromium.launch(
        executable_path=chromium(), args=["--no-sandbox", "--ignore-certificate-errors"]
    )
    context = browser.new_context(**playwright.devices["Pixel 5"])
    context.grant_permissions(["microphone"])
    yield context
    browser.close()


def talks(page: Page) -> None:
    expect(page.locator("#phase")).to_have_text("Microphone off")
    page.get_by_label("Type instead").fill("What is 7 times 8?")
    page.keyboard.press("Enter")
    expect(page.locator("#transcript")).to_contain_text("56")


def test_the_code_opens_the_page_and_nobody_types_a_key(phone: BrowserContext, link: str) -> None:
    address, key = link.split("#key=")
    page = phone.new_page()
    asked = list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.goto(link)
    talks(page)
    assert page.url == address, "the key is no longer in the address bar"
    assert page.evaluate("isSecureContext"), "so there may be a microphone"
    assert not any(key in url for url in asked)
    page.reload()
    talks(page)
    page.close()
    later = phone.new_page()
    later.goto(address)  # as from a bookmark
    talks(later)
    assert later.evaluate("history.length") == 2 and later.url == address


def test_a_key_of_an_older_code_is_replaced_and_can_be_forgotten(
    phone: BrowserContext, link: str
) -> None:
    address, key = link.split("#key=")
    page = phone.new_page()
    page.goto(f"{address}#key={'o' * 32}")
    expect(page.locator("#notice")).to_contain_text("It does not know the API key")
    page.goto(link)  # changes the part behind the # alone
    page.wait_for_url(address)
    talks(page)
    page.get_by_role("button", name="Settings").click()
    expect(page.get_by_label("API key")).to_have_value(key)
    page.get_by_label("API key").fill("")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#notice")).to_contain_text("It asks for an API key")
    page.reload()
    expect(page.locator("#notice")).to_contain_text("It asks for an API key")


def test_a_browser_that_opens_no_websocket_is_told_why(phone: BrowserContext, link: str) -> None:
    page = phone.new_page()
    page.add_init_script(NO_SOCKETS)
    page.goto(link)
    expect(page.locator("#notice")).to_contain_text("an iPhone has to trust its certificate first")
