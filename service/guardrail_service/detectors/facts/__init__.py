"""Does the answer state exact facts that the passages contradict?"""
