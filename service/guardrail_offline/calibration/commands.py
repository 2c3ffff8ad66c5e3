"""The commands under `guardrail calibrate`; importing this module registers them all."""

from guardrail_offline.calibration import lab_commands, label_commands
from guardrail_offline.calibration.app import calibrate_app

__all__ = ["calibrate_app", "lab_commands", "label_commands"]
