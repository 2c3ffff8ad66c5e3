"""Systems that a run asks: targets under test, and any OpenAI-compatible model.

`endpoint` alone opens connections; `openai_compatible` speaks one protocol over it; `targets`
answer questions; `asking` fills in the answers of a lab and continues where it stopped.
"""
