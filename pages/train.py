"""Start a training, follow it, stop it."""

import streamlit as st

from ui import knobs, launching, live, loaders, panels, planning, training

st.markdown(
    "Train a small network from scratch on reviews of your own or on a known set, and watch it learn.  \n"
    "A run goes on by itself: close this tab, come back to this address, and it is there."
)
found = loaders.runs()
id = training.which(found)
launching.refusal("train")
with panels.refusals():
    if id is None:
        start, data = st.columns(2, gap="medium")
        with start:
            base = training.base(found)
        with data:
            source = training.source("train_data")
        reviews = None if source is None else training.reviews(source, "train_data")
        if reviews is not None:
            config = knobs.choose(base.config, reviews, f"train_{base.id}")
            training.start(base, source, config)
            planning.before(config, f"train_{base.id}")
            training.expectation(config)
            training.costs(reviews)
    else:
        live.follow(id)
