"""What holds for every test: one thread, since threads that wait for each other on a busy machine take far longer, and no limit
of time."""

import os

from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["ATTENTION_LAB_RUNS"] = os.path.join(os.devnull, "runs")  # what somebody trained here is no model of a test
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")
