"""Is the answer JSON that satisfies a schema?"""
