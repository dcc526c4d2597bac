"""Which of these runs is better, and really?"""

import streamlit as st

from ui import compare, controls, loaders, run_panels

st.markdown(
    "What was set differently, what came of it, and at what cost.  \n"
    "A difference in accuracy counts when both were measured on the same reviews and it is more than chance would make."
)
run_panels.deleted()
found = loaders.runs()
if not any(run.is_run for run in found):
    run_panels.no_runs()
if not found:
    st.stop()
offered = found + loaders.members()
by_id = {run.id: run for run in offered}
pinned = [id for key in ("compare_baseline", "compare_runs") for id in controls.chosen(key, by_id, ())]
against = by_id[pinned[0]] if pinned else None
run_panels.table(found, against)
run_panels.take_list_away(found, against)
titles = compare.titles_of(offered)
chosen = [by_id[id] for id in controls.several("Runs to compare", titles, "compare_runs", most=8)]
if not chosen:
    st.info("Choose the runs to compare, or one to look at, rename, stop or delete.")
    st.stop()
for run in chosen:
    run_panels.one(run, titles[run.id])
run_panels.differences(chosen)
st.subheader("What came of it")
baseline = by_id[controls.one("Baseline", {run.id: titles[run.id] for run in chosen}, "compare_baseline")]
run_panels.figures(chosen, baseline)
charts = run_panels.curves(chosen)
run_panels.take_away(chosen, baseline, charts)
