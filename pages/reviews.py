"""Which reviews are behind a figure?"""

import streamlit as st

from ui import behind, controls, loaders, panels

st.markdown(
    "Every figure is a count of reviews. Tick a cell, or choose below which answers, and read the reviews behind it.  \n"
    "See of which mistakes a model is sure, and what one model understands and another does not."
)
if not loaders.model_names():
    panels.no_models()
    st.stop()
names = controls.models("reviews_models", most=2, default=2)
found = behind.opened(names, behind.of_which())
if found is None:
    st.info("Choose a model whose test answers are on record.")
    st.stop()
behind.matrices(found)
behind.table(found, *behind.wanted(found))
behind.checks(found)
