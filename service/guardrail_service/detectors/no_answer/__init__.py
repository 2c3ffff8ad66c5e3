"""Does the answer abstain?"""
