"""What do tutorials claim, and does it hold here?"""

import streamlit as st

from core.claims.command import known
from ui import claims

st.markdown(
    "Tutorials repeat claims that few have measured. Here each has an experiment, and a rule draws the verdict.  \n"
    "A verdict holds for the scale, the data and the hardware named beside it, and for nothing beyond them."
)
found = known()
claims.counts(found)
shown = claims.choose(found)
if not shown:
    st.info("No claim of these themes has any of these verdicts: choose others.")
    st.stop()
claims.table(shown)
claims.downloads(shown)
opened = claims.one(shown)
claims.details(opened)
claims.again(opened)
claims.follow()
