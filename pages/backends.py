"""Does every attention kernel give the same answers, and at what cost?"""

import streamlit as st

from ui import backends, launching, loaders, panels

st.markdown(
    "Kernels differ in the order in which they add numbers up, not in what they compute. Send one model's reviews through "
    "each.  \n"
    "Logits should differ by rounding alone, no answer should change, and only time and memory tell kernels apart."
)
if not loaders.model_names():
    panels.no_models()
    st.stop()
id = backends.which(loaders.runs())
launching.refusal("backends")
with panels.refusals():
    if id is None:
        backends.start()
    else:
        backends.follow(id)
