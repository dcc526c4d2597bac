"""Is a model right as often as it says, and where should a threshold lie?"""

import streamlit as st

from ui import calibration, controls, loaders, panels

st.markdown(
    "A model that says 90% should be right nine times in ten: its points then lie on the dotted line.  \n"
    "Below the line it is too sure, and whoever sorts reviews by confidence is misled."
)
if not loaders.model_names():
    panels.no_models()
    st.stop()
found = calibration.answers(controls.models("calibration_models", most=5, default=2))
if not found:
    st.info("Choose a model whose test answers are on record.")
    st.stop()
calibration.curves(found)

st.subheader("One model, closer")
name = controls.one("Model", {name: loaders.model_title(name) for name in found}, "calibration_model")
with panels.refusals():
    calibration.closer(name, found[name])
st.page_link(
    "../pages/reviews.py",
    label="Read its wrong answers",
    icon=":material/rate_review:",
    query_params={"reviews_models": [name], "reviews_which": "wrong answers"},
)
