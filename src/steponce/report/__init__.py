"""
The report on one request: what happened, what is going on, and what to do next.

    story      the report as typed objects
    diagnosis  judges what is going on, and what to do next
    collector  reads the record, the executions and their histories, and makes the report
"""
