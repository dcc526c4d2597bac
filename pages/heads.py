"""What does each head do, and what happens without it?"""

import streamlit as st

from ui import controls, heads, loaders, panels

st.markdown(
    "A Transformer looks at a review with several heads at once. See what each looks at, and switch some off.  \n"
    "If a head matters, the answer moves without it; if it only looks as if it did, nothing happens."
)
if not loaders.model_names():
    panels.no_models()
    st.stop()
review = controls.review("Look")
name, how = heads.asked()
if not review.strip():
    st.info("Nothing to look at yet: type a review above, or take one of the examples.")
    st.stop()
with panels.refusals():
    found, reading = loaders.heads(name, review, how), loaders.reading(name, review, windows=False)
    heads.every(name, found, reading)
    heads.without(name, reading, how)
    heads.sample(name, how)
