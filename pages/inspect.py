"""What does the model make of this review, and on what evidence?"""

import streamlit as st

from core.artifact import Model
from ui import controls, history, loaders, maps, panels

st.markdown(
    "Type a film review: each model says what it makes of it, and its words are shaded by the attention they receive.  \n"
    "See whether two models agree, and whether they look at the same words while they do."
)
if not loaders.model_names():
    panels.no_models()
    st.stop()
review = controls.review()
names, windows = controls.readers()
history.offer(review, names)
if not review.strip():
    st.info("Nothing to read yet: type a review above, or take one of the examples.")
    st.stop()
if not names:
    st.info("Choose a model to read the review.")
    st.stop()

views, answers = [], {}
columns = st.grid(len(names), min_column_width=340, gap="large")
for name in names:
    with columns.cell(), panels.refusals():
        reading, model = loaders.reading(name, review, windows), loaders.model(name)
        panels.answer(model, reading)
        answers[name] = reading.prediction
        if isinstance(model, Model) and model.kind == "linear":
            panels.added(model, reading)
            continue
        views.append(controls.view(model, reading))
        panels.words(views[-1])
for view in views:
    maps.show(view)
history.note(review, names, answers)
