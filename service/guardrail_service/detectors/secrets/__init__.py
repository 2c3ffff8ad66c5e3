"""Does the answer leak keys, tokens or passwords?"""
