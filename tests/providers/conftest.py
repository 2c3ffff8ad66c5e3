"""Run by `.ci/providers` only: onnxruntime with the execution provider OpenVINO."""

import onnxruntime

HAS = "OpenVINOExecutionProvider" in onnxruntime.get_available_providers()
collect_ignore_glob = [] if HAS else ["test_*.py"]
