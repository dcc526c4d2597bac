import string

from ui.markdown import literal


def test_every_sign_that_could_begin_markup_is_escaped():
    assert literal("$x$ :red[y]") == "\\$x\\$ \\:red\\[y\\]"
    assert literal(string.punctuation) == "".join("\\" + sign for sign in string.punctuation)


def test_letters_of_all_languages_stay():
    assert literal("Karadžić 这部 1") == "Karadžić 这部 1"
