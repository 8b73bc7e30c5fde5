"""
The same for callbacks: requests that wait for answers from outside, and everyone who answers.

The schedules use the turns, the faults and the installation of the package around this one. Steps are
answered by links, a queue, commands and holders of the raw token, more than once, at once, and differently.
They time out, are tried again, are asked again and are stopped. The judge knows which answers the workflow
got, and compares each verdict with that at the moment when it is given.

`make simulate SIMULATE=--callbacks` runs them.
"""
