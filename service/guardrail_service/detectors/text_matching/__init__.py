"""Does the answer satisfy a condition on its text?"""
