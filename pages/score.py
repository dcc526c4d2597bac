"""What do the models make of many reviews, and where do they disagree?"""

import streamlit as st

from ui import controls, loaders, panels, score

st.markdown(
    "Paste many reviews or upload a table: each model gives every review a label and says how sure it is.  \n"
    "Look first at those of which it is least sure, or at those on which two models disagree."
)
st.caption(f"Up to {score.MOST:,} reviews; a larger table goes by the command line, `python -m core predict --file`.")
if not loaders.model_names():
    panels.no_models()
    st.stop()
names = controls.models("score_models", most=2, default=2)
with panels.refusals():
    reviews = score.reviews()
    if reviews is None:
        st.stop()
    if not names:
        st.info("Choose a model to score the reviews.")
        st.stop()
    found = score.answers(names, reviews)
    if found:
        score.findings(found, reviews)
        score.table(names, found, reviews)
        score.downloads(names, found, reviews)
