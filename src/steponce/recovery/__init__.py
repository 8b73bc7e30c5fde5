"""
Recovers locks whose owners died.

    owner     decides whether an owner is dead, and has the outcome recorded that it left
    history   summarises the events of an execution
    child     looks at the execution that an owner has started for its work
    work      until when the work of a closed execution may still run
    leases    whether the lease of a guard's lock is over; holds the lock then
    outcomes  writes the outcome that a dead owner left
    repair    repairs one lock whose owner may be dead
"""
