"""
Lets requests run side by side in simulated time, with everything that can go wrong, and judges the outcome.

The state machine's definition, the functions, the client and the operator's commands are the real ones. The
tables are moto's. Step Functions, the queue, the event rules and the clock are simulated: each process is an
actor, and a seed chooses who acts next, which executions are stopped, and which calls are throttled,
repeated, late or lost.

`make simulate SEEDS=0-9999` runs as many schedules as there is time for. The package `callbacks` has the
schedules of steps that wait for an answer. With `--put-back` people put dead letters back, too.

`planted.py` has the faults that the simulation must find, each with a story that finds it: a schedule given
as data, which no seed decides. `make simulate SIMULATE="--story 'The monitor does nothing'"` runs one, and
PLANT="The monitor does nothing" plants its fault. PLANT alone looks for a seed that finds the fault.
"""
