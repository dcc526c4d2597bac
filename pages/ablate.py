"""Does it matter? One thing changed at a time, with several seeds."""

import streamlit as st

from ui import experiment_panels, experiments, launching, loaders, panels

st.markdown(
    "Change one thing of a configuration at a time, train both with several seeds, and see whether it matters.  \n"
    "A whisker that crosses zero is a difference that chance alone can make. Many differences are compared at once, and the "
    "more there are, the more of them chance makes: p is therefore corrected (Holm)."
)
id = experiments.which(loaders.runs())
launching.refusal("ablate")
if id is None:
    chosen = None
    with panels.refusals():
        chosen = experiments.choose()
        if chosen is not None:
            experiments.start(*chosen)
    place = st.container()
    experiment_panels.on_record()
    if chosen is not None:
        with place, panels.refusals():  # last, since trying these networks takes a while
            experiments.expectation(chosen[1])
else:
    with panels.refusals():
        experiments.follow(id)
