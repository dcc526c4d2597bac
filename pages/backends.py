"""Does every attention kernel give the same answers, and at what cost?"""

import streamlit as st

from ui import backends, launching, loaders, panels

st.markdown(
    "Kernels add the same numbers up in different orders. Send one model's reviews through each and see what that does.  \n"
    "If all is well, logits differ by rounding alone, no answer changes, and only time and memory tell kernels apart."
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
