"""The offline module: evaluators, calibration, perturbation. Serving never imports it."""
