"""What do naive and flash attention cost in memory and in time, as reviews get longer?"""

import streamlit as st

from ui import loaders, measuring, panels

st.markdown(
    "Naive attention (`eager`) keeps a weight for every pair of tokens: B × H × T × T numbers in each layer, for B reviews of "
    "T tokens and H heads.  \n"
    "Flash attention (`sdpa`) works them out block by block and keeps one number for each row, B × H × T: the same result, in "
    "memory that grows with T and not with its square."
)
chosen = measuring.which(loaders.runs())
with panels.refusals():
    if chosen is None:
        config = measuring.choose()
        measuring.start(config)
        measuring.show(config, [])
        measuring.cards(config)
    else:
        measuring.follow(chosen)
