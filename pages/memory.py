"""What do naive and flash attention cost in memory and in time, as reviews get longer?"""

import streamlit as st

from ui import controls, loaders, measuring, memory_panels, panels

if not controls.presenting():
    st.markdown(
        "Naive attention (`eager`) keeps a weight for every pair of tokens. Flash attention (`sdpa`) works them out block by "
        "block and keeps one number for each row: the same result, in memory that grows with length and not with its square."
    )
id = measuring.which(loaders.runs())
with panels.refusals():
    if id is not None:
        run = measuring.follow(id)
        config, measured, missing = run.sweep, measuring.measured(run), measuring.missing(run)
    else:
        run, config, measured, missing = None, measuring.choose(), [], "not measured yet"
        measuring.start(config)
    chosen = memory_panels.charts(config, measured, run)
    if not controls.presenting():
        memory_panels.below(config, measured, chosen, run, missing)
