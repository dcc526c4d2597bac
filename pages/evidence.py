"""Which words does an answer rest on, and can that be trusted?"""

import streamlit as st

from ui import controls, evidence, loaders, panels, trusted

st.markdown(
    "Where a model looks is not yet what its answer rests on: several methods weigh the same words here.  \n"
    "If one is right, the answer falls when its strongest words go, sooner than when any others do."
)
if not loaders.model_names():
    panels.no_models()
    st.stop()
review = controls.review("Explain")
names = controls.models("evidence_models", most=2, default=1)
if not review.strip():
    st.info("Nothing to explain yet: type a review above, or take one of the examples.")
    st.stop()
if not names:
    st.info("Choose a model to explain.")
    st.stop()
for name in names:
    with panels.refusals():
        reading, model = loaders.reading(name, review, windows=False), loaders.model(name)
        panels.answer(model, reading)
        found = evidence.found(name, review)
        evidence.words(name, found)
        evidence.every_method(name, found)
        trusted.show(model)
        evidence.trust(model, reading, found)
