"""What the benchmark of the pages types, and what it is held against."""

import pytest

from benchmarks import pages
from benchmarks.budgets import BUDGETS


@pytest.mark.parametrize("tokens", [30, 250, 512])
def test_reviews_have_so_many_words_and_end_in_different_ones(tokens):
    found = pages.texts(tokens)
    assert {len(text.split()) for text in found} == {tokens}
    assert [text.split()[-1] for text in found] == list(pages.WORDS)
    assert len({text.rpartition(" ")[0] for text in found}) == 1


def test_every_promise_on_a_review_is_on_a_step_that_is_timed():
    rows = {row for budget in BUDGETS if budget.what.startswith("warm, 250 tokens") for row in budget.rows}
    assert rows and rows <= {f"{step}, {pages.READ} tokens" for step in pages.STEPS}
