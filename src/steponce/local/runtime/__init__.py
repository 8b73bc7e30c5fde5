"""
Lambda on this machine: processes that run each function's real code.

    child_process       a child that speaks in lines, and ends with its parent
    clocks              the clock of a task's time-out
    forkserver          the process that forks workers
    forkserver_process  the engine's side of it
    workers             one process of one function, and the Runtime API that it asks for work
    functions           the Invoke API in front of warm workers
"""
