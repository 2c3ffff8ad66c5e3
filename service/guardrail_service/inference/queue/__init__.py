"""The queue: decides which model row runs when.

    a check                     another check
       | rows                      | rows
       v                           v
    submit     what a memory knows is answered here and never queued
       |
    admit      429 if the work of others would make the deadline impossible
       |
    share      an equal row that waits or runs gets one more waiter: one job, several waiters
       |
    order      by deadline, but at least as urgent as one due a second after it came;
       |       callers take turns by what their work has cost of late;
       |       a row that reads others' outputs is held until those have ended
       v
    [ backlog ]
       |
    batch      a free worker takes the most urgent row, and where the model's file allows it
       |       others of about its length
    run        one model call; the cost model learns what it took
       |
    wake       every waiter gets the outputs; rows that were held for this one may start

`scheduler.py` submits, admits, runs and wakes; `backlog.py` shares and orders; `batch.py` says
which rows may share a call; `cost.py` what a row will take and what callers have had. See
docs/decisions/0010-scheduler.md.
"""
