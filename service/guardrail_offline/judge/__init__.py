"""Asks a judge, keeps what it said, and reads it back.

`transcripts` is the store, `judge_tasks` says what is asked, `judge_replies` what counts as an
answer, `limits` how fast and for how much; `judge_client` alone asks. Evaluators get verdicts and
never see a message: with one store the same verdicts give the same scores.
"""
