"""Which pages there are. The default page has no URL of its own, so it is none of them: it leads to the first."""

from pathlib import Path

import streamlit as st

from ui.warm import page_painted

# the tab's symbol: a page's own would be fetched from another company's server, by every browser at every visit
ICON = Path(__file__).with_name("icon.png")

INSPECT = st.Page(
    "../pages/inspect.py",
    title="Inspect",
    icon=":material/search:",
    help="What does a model make of a review, and on what evidence?",
)
EVIDENCE = st.Page(
    "../pages/evidence.py",
    title="Evidence",
    icon=":material/format_ink_highlighter:",
    help="Which words does an answer rest on, and can that be trusted?",
)
HEADS = st.Page(
    "../pages/heads.py",
    title="Heads",
    icon=":material/hub:",
    help="What does each attention head do, and what happens without it?",
)
WHATIF = st.Page(
    "../pages/whatif.py",
    title="What if",
    icon=":material/alt_route:",
    help="What becomes of the answer if the text, or the model, is another?",
)
TRAIN = st.Page(
    "../pages/train.py",
    title="Train",
    icon=":material/model_training:",
    help="Start a training, follow it, stop it.",
)
SCORE = st.Page(
    "../pages/score.py",
    title="Score",
    icon=":material/table_rows:",
    help="What do the models make of many reviews, and where do they disagree?",
)
COMPARE = st.Page(
    "../pages/compare.py",
    title="Compare",
    icon=":material/compare_arrows:",
    help="Which of these runs is better, and really?",
)
ABLATE = st.Page(
    "../pages/ablate.py",
    title="Ablate",
    icon=":material/science:",
    help="Does it matter? One thing changed at a time, with several seeds.",
)
LENGTHS = st.Page(
    "../pages/lengths.py",
    title="Lengths",
    icon=":material/straighten:",
    help="How does accuracy change with the length of a review?",
)
REVIEWS = st.Page(
    "../pages/reviews.py",
    title="Reviews",
    icon=":material/rate_review:",
    help="Which reviews are behind a figure?",
)
CALIBRATION = st.Page(
    "../pages/calibration.py",
    title="Calibration",
    icon=":material/balance:",
    help="Is a model right as often as it says, and where should a threshold lie?",
)
BACKENDS = st.Page(
    "../pages/backends.py",
    title="Backends",
    icon=":material/swap_horiz:",
    help="Does every attention kernel give the same answers, and at what cost?",
)
CLAIMS = st.Page(
    "../pages/claims.py",
    title="Claims",
    icon=":material/fact_check:",
    help="What do tutorials claim, and does it hold here?",
)
MEMORY = st.Page(
    "../pages/memory.py",
    title="Memory",
    icon=":material/memory:",
    help="What do naive and flash attention cost in memory and in time?",
)


def home() -> None:
    """Lead to the first page, and take what the URL says along."""
    st.switch_page(INSPECT, query_params={name: st.query_params.get_all(name) for name in st.query_params})


HOME = st.Page(home, default=True, visibility="hidden")

st.set_page_config(page_icon=str(ICON), layout="wide")  # before the navigation, which would set a page's own symbol
presenting = st.query_params.get("present") == "1"  # on a projector
pages = {
    "One review": [HOME, INSPECT, EVIDENCE, HEADS, WHATIF],
    "Many reviews": [SCORE, LENGTHS, REVIEWS, CALIBRATION],
    "Training": [TRAIN, COMPARE, ABLATE],
    "Attention": [MEMORY, BACKENDS, CLAIMS],
}
page = st.navigation(pages, position="hidden" if presenting else "sidebar", expanded=True)
shown = INSPECT if page is HOME else page
st.set_page_config(page_title=f"{shown.title} - Attention lab")
with st._main:  # asked for right after a part of the former page was drawn by itself, Streamlit would go on in that one's place
    if not presenting:
        st.title(shown.title)  # before the page's own imports, so that there is something to see at once
        from ui import running  # which is slower to import than a title to show

        running.line()
    try:
        from ui import address

        with address.answered(page.url_path):
            page.run()
    finally:  # a page may end early, by st.stop
        if page is not HOME:
            page_painted.set()
