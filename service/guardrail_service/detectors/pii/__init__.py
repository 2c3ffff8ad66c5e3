"""Does the answer leak personal data?"""
