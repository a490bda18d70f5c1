"""voicebench: a latency testbed for voice agents."""

import os

__version__ = "0.1.0"

# ONNX Runtime (voice activity, Piper) and the model hub's client report to their makers unless these are set
# before either is imported. Threads that report would run beside the measurement, too.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
