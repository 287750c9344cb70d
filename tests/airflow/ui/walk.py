"""What somebody does on Airflow's page at four in the morning, with a real browser.

Runs in an environment of its own (`make browser`), so nothing of Causeway is imported here. Reads a wish as
JSON from standard input, says one line per step, and ends with 0 if the page showed what it should.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from playwright.sync_api import (  # type: ignore[import-not-found, unused-ignore]  # in a lock of its own
    Browser,
    BrowserContext,
    Page,
    Response,
    expect,
    sync_playwright,
)

_DESK = {"width": 1280, "height": 900}
_PHONE = {"width": 375, "height": 812}
_PATIENCE_MS = 300_000
_BAD_REQUEST = 400
_TRIGGER = re.compile("^Trigger")
_GRID_PIXELS = 66
_READING_MS = 20_000
_SETTLED_MS = 1_500
"""The page draws itself in steps; a picture is taken after the last of them."""


@dataclass(frozen=True, slots=True)
class Wish:
    url: str
    user: str
    password: str
    dag: str
    chromium: str
    day: str
    minute: str
    pictures: str
    sheets: str
    """The folder where the failover's task leaves the sheet's page."""


class Walk:
    def __init__(self, browser: Browser, wish: Wish) -> None:
        self.browser, self.wish, self.pictures = browser, wish, Path(wish.pictures)
        self.state = self._log_in()

    def _log_in(self) -> Any:
        context = self._context(_DESK, None)
        page = context.new_page()
        page.goto(self.wish.url)
        page.fill("input[name=username]", self.wish.user)
        page.fill("input[name=password]", self.wish.password)
        page.keyboard.press("Enter")
        page.wait_for_url(lambda url: "login" not in url)
        return context.storage_state()

    def _context(self, size: Any, state: Any) -> BrowserContext:
        made = self.browser.new_context(viewport=size, storage_state=state, color_scheme="light")
        made.set_default_timeout(_PATIENCE_MS)
        return made

    def page(self, size: Any, path: str) -> Page:
        page = self._context(size, self.state).new_page()
        page.goto(f"{self.wish.url}{path}", wait_until="commit")
        return page

    def picture(self, page: Page, name: str, *, whole: bool = False) -> None:
        page.wait_for_timeout(_SETTLED_MS)
        page.screenshot(path=self.pictures / f"{name}.png", full_page=whole)
        say(f"picture {name}")

    def trigger(self) -> str:
        """The form: refused with the reason, mended, accepted; the run's id."""
        page = self.page(_DESK, f"/dags/{self.wish.dag}")
        page.get_by_role("button", name=_TRIGGER).first.click()
        form = page.get_by_role("dialog")
        form.get_by_text("Select date and time").click()
        page.get_by_placeholder("YYYY/MM/DD").fill(self.wish.day)
        page.get_by_placeholder("HH:mm").fill(self.wish.minute)
        page.keyboard.press("Escape")
        step_back = form.locator("[name=element_safety]")
        step_back.fill("30s")
        self.picture(page, "form")
        step_back.fill("30")
        refused = self._press_trigger(page)
        if refused.status != _BAD_REQUEST or "'30' does not match" not in refused.text():
            raise SystemExit(f"a step back of 30 what is answered with {refused.status}: {refused.text()}")
        form.evaluate("dialog => dialog.scrollIntoView()")
        self.picture(page, "refused")
        step_back.fill("30s")
        answer = self._press_trigger(page).json()
        say(f"triggered {answer['dag_run_id']} with {answer['conf']}")
        return str(answer["dag_run_id"])

    def _press_trigger(self, page: Page) -> Response:
        with page.expect_response(lambda answer: answer.request.method == "POST") as made:
            page.get_by_role("dialog").get_by_role("button", name=_TRIGGER).last.press(
                "Enter"
            )  # notices may lie on it
        return made.value

    def approve(self, run: str) -> None:
        path = f"/dags/{self.wish.dag}/runs/{run}/tasks/approve/required_actions"
        page = self.page(_DESK, f"/dags/{self.wish.dag}/runs/{run}")
        # Before somebody is asked, this address shows the task's log and stays there.
        while self._state(page, run, "/taskInstances/approve") != "awaiting_input":
            page.wait_for_timeout(_SETTLED_MS)
        page.goto(f"{self.wish.url}{path}", wait_until="commit")
        expect(page.get_by_text("records lost")).to_be_visible()
        self.picture(page, "approval")
        phone = self.page(_PHONE, path)
        expect(phone.get_by_text("records lost")).to_be_attached()
        self._make_room(phone)
        self.picture(phone, "approval-phone")
        # Airflow 3.3.2 fails a task that is answered before its scheduler has seen that it waits.
        page.wait_for_timeout(_READING_MS)
        page.get_by_role("button", name=re.compile("^Approve")).first.click()
        say("approved")

    def _state(self, page: Page, run: str, of: str = "") -> str:
        asked = f"{self.wish.url}/api/v2/dags/{self.wish.dag}/dagRuns/{quote(run, safe='')}{of}"
        state: str = page.request.get(asked, timeout=_PATIENCE_MS).json()["state"]
        return state

    def _tasks(self, page: Page, run: str) -> Any:
        asked = f"{self.wish.url}/api/v2/dags/{self.wish.dag}/dagRuns/{quote(run, safe='')}/taskInstances"
        tasks = page.request.get(asked, timeout=_PATIENCE_MS).json()["task_instances"]
        return {each["task_id"]: (each["state"], each["try_number"]) for each in tasks}

    def _make_room(self, phone: Page) -> None:
        """On a telephone Airflow's grid hides the task; the line between them can be drawn to the left."""
        line = phone.locator("[role=separator]").first.bounding_box()
        if line is not None:
            phone.mouse.move(line["x"] + 1, line["y"] + 200)
            phone.mouse.down()
            phone.mouse.move(_GRID_PIXELS, line["y"] + 200, steps=10)
            phone.mouse.up()

    def see_it_green(self, run: str) -> None:
        page = self.page(_DESK, f"/dags/{self.wish.dag}/runs/{run}")
        while (state := self._state(page, run)) not in {"success", "failed"}:
            page.wait_for_timeout(_SETTLED_MS)
        if state != "success":
            raise SystemExit(f"the run ended as {state}: {self._tasks(page, run)}")
        page.reload(wait_until="commit")
        expect(page.get_by_text("Success").first).to_be_visible()
        self.picture(page, "green")

    def see_the_sheet(self) -> None:
        """As it lies beside the reports."""
        (sheet,) = Path(self.wish.sheets).glob("*.html")
        for name, size in (("sheet", _DESK), ("sheet-phone", _PHONE)):
            page = self._context(size, None).new_page()
            page.goto(sheet.as_uri())
            wide = page.evaluate("document.documentElement.scrollWidth")
            if wide > size["width"]:
                raise SystemExit(f"the sheet is {wide} pixels wide on a screen of {size['width']}")
            self.picture(page, name)


def say(line: str) -> None:
    print(line, flush=True)


def main() -> None:
    expect.set_options(timeout=_PATIENCE_MS)
    wish = Wish(**json.load(sys.stdin))
    with sync_playwright() as playwright:
        # Chromium's own sandbox needs rights that a container doesn't have; it sees nothing but this Airflow.
        browser = playwright.chromium.launch(executable_path=wish.chromium, args=["--no-sandbox"])
        walk = Walk(browser, wish)
        run = walk.trigger()
        walk.approve(run)
        walk.see_it_green(run)
        walk.see_the_sheet()
        browser.close()


if __name__ == "__main__":
    main()
