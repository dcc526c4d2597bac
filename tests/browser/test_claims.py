"""The claim that is ticked in the table is the one that opens, and its address holds it."""

from tests.browser.conftest import faults
from tests.browser.test_score import ROW, TICK


def test_the_claim_that_was_ticked_is_the_one_that_opens(server, page):
    page.goto(server.url + "/claims?claims_theme=numbers+and+masks")
    table = page.locator("[data-testid=stDataFrame]").first
    table.wait_for()
    table.click(position={"x": 60, "y": ROW // 2})
    page.get_by_text("Sort descending").click()  # in the browser alone: the last claim is on top now
    table.click(position={"x": TICK, "y": ROW + ROW // 2})
    page.get_by_text("Claim 41, numbers and masks. Source: B.").wait_for()
    assert "claims_claim=norm-over-text" in page.url
    assert faults(server.log) == []
