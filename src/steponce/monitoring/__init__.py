"""
The schedule's round: finds and repairs what no event reported.

    monitor      overdue and dead locks, and waiting steps past their time
    missed_ends  executions that ended, and whose end no event reported
"""
