import string

import pytest

from ui.markdown import literal, sentence


def test_every_sign_that_could_begin_markup_is_escaped():
    assert literal("$x$ :red[y]") == "\\$x\\$ \\:red\\[y\\]"
    assert literal(string.punctuation) == "".join("\\" + sign for sign in string.punctuation)


def test_letters_of_all_languages_stay():
    assert literal("Karadžić 这部 1") == "Karadžić 这部 1"


@pytest.mark.parametrize(("text", "said"), [
    ("left out 2 rows.", "Left out 2 rows."),
    ("stopped", "Stopped."),
    ("batch_size: got 9", "batch_size: got 9."),
    ("lr: got 9", "lr: got 9."),
    ("run.json cannot be read", "run.json cannot be read."),
    ("/tmp/a: no", "/tmp/a: no."),
    ("ß and more", "ß and more."),
    ("", "."),
])  # fmt: skip
def test_a_sentence_begins_with_a_capital_and_a_name_with_its_own_letter(text, said):
    assert sentence(text).replace("\\", "") == said and sentence("a $") == "A \\$\\."
