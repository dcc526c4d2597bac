"""What the lab takes, measured; results are RESULTS_*.json, and .md for people, as `core.recorded` reads them.

    python -m benchmarks.cpu       everything that two cores can be asked, in about 35 minutes
    python -m benchmarks.gpu       the same for a GPU, in at most 6
    python -m benchmarks.arrays    the reviews for a machine without network

A machine of the latter kind may lack jaxtyping, too; shapes are then not named, here and in processes that are started.
"""

import importlib.util
import os
import sys
from pathlib import Path

if importlib.util.find_spec("jaxtyping") is None:
    _stand_ins = str(Path(__file__).parent / "stand_ins")
    sys.path.append(_stand_ins)
    os.environ["PYTHONPATH"] = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), _stand_ins])
