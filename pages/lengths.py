"""How does accuracy change with the length of a review?"""

import streamlit as st

from core.figures.lengths import accuracy_by_length
from ui import controls, lengths, loaders, markdown, panels

st.markdown(
    "A recurrent network is said to forget the beginning of a long review, and attention not to.  \n"
    "If so, the BiLSTM's points fall to the right and the Transformer's do not. "
    "Bars are 95% intervals of each figure; both models read the same reviews, so overlap settles nothing between them."
)
if not loaders.model_names():
    panels.no_models()
    st.stop()
names = controls.models("lengths_models", most=5, default=5)
found = {}
for name in names:
    with panels.refusals():
        found[loaders.model_title(name)] = lengths.on_test(loaders.predictions(name))
if not found:
    st.info("Choose a model whose test predictions are on record.")
    st.stop()

panels.chart(accuracy_by_length(found), key="lengths_chart", alt="Accuracy by length of the review")
for name, rows in found.items():
    st.markdown(markdown.literal(lengths.finding(name, rows)))
st.dataframe(lengths.table(found), hide_index=True, key="lengths_table", column_config=panels.PERCENT, placeholder="no data")
st.caption(
    "Test reviews only, which no model was trained or chosen on. Words are those of the typed text before it is cut to what "
    "a model reads. Intervals are Wilson's; a range without reviews has no figure."
)
