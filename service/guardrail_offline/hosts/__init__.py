"""Systems that a run asks: targets under test, and any model that judges or embeds.

`endpoint` alone opens connections; `chat` says how models are asked whoever serves them; `targets`
answer questions; `asking` fills in the answers of a lab and continues where it stopped.
"""
