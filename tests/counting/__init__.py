"""
Machines driven along each path that `steponce cost` finds, and what is counted on the way.

    answers       what the tasks of a machine may be answered
    drives        a machine with its inputs and answers
    engine        the embedded engine's interpreter, in which a script answers each task and nothing is called
    integrations  runs what the embedded engine does not: activities, HTTP calls, jobs and JSONata
    units         what AWS would bill of a run
    exploring     every way that a machine can go with these answers
    comparing     what was driven, beside what cost says
    run_once      the workflow of this package
    shipped       the machines that come with it
    wrapped       the machines of tests/machines, as they are and wrapped
    samples       the machines in the tests of other parts
"""
