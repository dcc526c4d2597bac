"""What do tutorials claim, and does it hold here?"""

import streamlit as st

from core.claims.command import known
from ui import claims

st.markdown(
    "Tutorials repeat what few have measured. Here each claim has an experiment, and a rule makes a verdict of its figures.  \n"
    "A verdict is of the scale, the data and the hardware that stand beside it, and of nothing larger."
)
found = known()
claims.counts(found)
shown = claims.choose(found)
if not shown:
    st.info("No claim of these themes came to these verdicts: choose others.")
    st.stop()
claims.table(shown)
claims.downloads(shown)
opened = claims.one(shown)
claims.details(opened)
claims.again(opened)
claims.follow()
