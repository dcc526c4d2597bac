"""A word is chosen by a click; what is typed stays in its tab."""

from tests.browser.conftest import faults
from tests.browser.test_app import PROBES, SHADED, inspect, scrolls_sideways

SECRET = "a xylophonic zebra"


def test_a_click_on_a_word_looks_from_it_and_another_from_all(server, page):
    page.set_viewport_size({"width": 375, "height": 700})
    page.goto(f"{server.url}/inspect?inspect_layer_imdb-encoder=1&inspect_head_imdb-encoder=3")
    review = page.locator(SHADED).first
    inspect(page, PROBES["arabic"])
    assert review.evaluate("e => getComputedStyle(e).direction") == "rtl" and not scrolls_sideways(page)
    inspect(page, "good film good plot")
    assert review.evaluate("e => getComputedStyle(e).direction") == "ltr"
    word = review.locator("[data-unit='2']")
    word.click()
    page.wait_for_selector("text=Attention of 3 good, layer 1, head 3.")
    page.locator(SHADED).nth(1).get_by_text("plot").click()  # of the BiLSTM, whose words do not look at one another
    word.click()
    page.wait_for_selector("text=Attention received, layer 1, head 3.")
    assert faults(server.log) == []


def test_what_is_typed_comes_back_in_its_tab_and_is_nowhere_else(server, browser, page):
    page.goto(f"{server.url}/inspect?inspect_before=true")
    inspect(page, SECRET)
    inspect(page, "a dull film")
    page.get_by_role("button", name=SECRET).click()
    page.wait_for_function("([query, text]) => document.querySelector(query)?.textContent === text", arg=[SHADED, SECRET])
    other = browser.new_page()
    other.goto(page.url)
    other.wait_for_selector("text=Nothing to read yet", timeout=90_000)
    assert "zebra" not in other.content() and "Inspected before" not in other.content()
    other.close()
    assert "zebra" not in page.url and "zebra" not in server.log.read_text()
    assert faults(server.log) == []
