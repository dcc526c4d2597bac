"""What if the text, or the model, were another?"""

import streamlit as st

from ui import controls, loaders, panels, whatif

st.markdown(
    "Change the review, take words away, say “not”, or ask another model, and see what becomes of the answer.  \n"
    "If it turns for a reason that a reader would share, trust it more; if for none, you have found where it is weak."
)
if not loaders.model_names():
    panels.no_models()
    st.stop()
review = controls.review("Ask")
name = controls.model("whatif_model")
show = whatif.asked()
if not review.strip():
    st.info("Nothing to change yet: type a review above, or take one of the examples.")
    st.stop()
with panels.refusals():
    show(name, review)
