"""What a link asks for and cannot get is said once, on every page alike, and what is shown instead."""

import pytest

INSTEAD = "The address asks for {} ({}), which cannot be shown here: {} shown instead."


def warnings(page) -> list[str]:
    assert not page.exception
    told = [warning.value.replace("\\", "") for warning in page.warning]
    return [sentence for sentence in told if sentence.startswith("The address asks for ")]


def opened(first_page, page: str, **asked):
    """A page by its address, as in a new tab."""
    first_page.run().switch_page(f"../pages/{page}.py")
    first_page.query_params |= asked
    return first_page.run()


@pytest.mark.parametrize(
    ("name", "asked", "told"),
    [
        (
            "lengths", {"lengths_models": ["cls", "gone"], "lengths_figure": "<b>F2", "lengths_short": "FALSE"},
            [("gone", "lengths_models", "cls is"), ("<b>F2", "lengths_figure", "accuracy is")],
        ),
        ("reviews", {"reviews_which": "none", "reviews_from": "-5"}, [
            ("none", "reviews_which", "every review is"), ("-5", "reviews_from", "0 is"),
        ]),
        ("compare", {"compare_runs": ["models/cls", "x"]}, [("x", "compare_runs", "cls is")]),
        ("claims", {"claims_theme": ["numbers", "speed"]}, [("numbers", "claims_theme", "speed is")]),
        ("claims", {"claims_verdict": "only when"}, []),
    ],
)  # fmt: skip
def test_what_is_not_shown_is_told(first_page, name, asked, told, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))
    page = opened(first_page, name, **asked)
    assert warnings(page) == [INSTEAD.format(*each) for each in told]
    assert not warnings(page.run())


def test_a_head_that_a_model_has_not_is_told_of(first_page):
    first_page.session_state["inspect_review"] = "good film"
    page = opened(first_page, "heads", heads_off=["9.9", "1.1"])
    assert warnings(page) == [INSTEAD.format("9.9", "heads_off", "layer 1, head 1 is")]
    assert page.multiselect(key="heads_off").value == ["1.1"]


def test_ones_own_choice_is_never_told(first_page):
    page = opened(first_page, "lengths", lengths_models=["cls"])
    page.segmented_control(key="lengths_figure").set_value("F1").run()
    page.query_params["lengths_figure"] = "F1"  # as a browser has it after that
    assert not warnings(page.run())
    page.segmented_control(key="lengths_figure").set_value("accuracy").run()
    assert not warnings(page)


def test_it_stays_open_where_a_page_is_stopped_before_it_is_drawn(first_page):
    page = opened(first_page, "lengths", lengths_models=[""], lengths_figure="F2")
    assert not warnings(page)
    page.multiselect(key="lengths_models").set_value(["cls"]).run()
    assert warnings(page) == [INSTEAD.format("F2", "lengths_figure", "accuracy is")]
