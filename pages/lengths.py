"""How does accuracy change with the length of a review?"""

import streamlit as st

from ui import controls, lengths, loaders, markdown, panels

st.markdown(
    "A recurrent network is said to forget the beginning of a long review, and attention not to.  \n"
    "If so, the BiLSTM's points fall to the right and the Transformer's do not."
)
if not loaders.model_names():
    panels.no_models()
    st.stop()
names = controls.models("lengths_models", most=5, default=5)
if not names:
    st.info("Choose a model whose test answers are on record.")
    st.stop()
asked = lengths.asked(names)
found = lengths.measured(names, asked) if asked else []
if not found:
    st.stop()
baseline = lengths.baseline(found)
found = lengths.against(found, baseline, asked)

figure = lengths.figure()
chart, gains = lengths.chart(found, asked, figure), lengths.difference_chart(found, baseline)
panels.chart(chart, key="lengths_chart", alt=f"{figure} by length of the review")
for sentence in lengths.findings(found, baseline):
    st.markdown(markdown.literal(sentence))
lengths.table(found, baseline, asked)
if gains is not None:
    st.subheader(f"Against {markdown.literal(loaders.model_title(baseline))}, on the same reviews")
    panels.chart(gains, key="lengths_gains", alt="Difference in accuracy by length of the review")
st.caption(lengths.NOTES)
lengths.downloads(found, baseline, figure, {figure: chart} | ({} if gains is None else {"against the baseline": gains}))
