"""
Callbacks: steps of the workflow that wait for an answer from outside.

    answer    parses an answer, and checks its limits
    step      one awaiting step, as its record has it
    awaiting  the table of awaiting steps: every write is conditional
    resolver  gives each answer one verdict, and sends accepted answers to Step Functions
    links     signs and verifies links that may answer one step
    page      the page behind a link: what is asked, and which answer arrived
    routes    the links' HTTP routes: GET shows the page, POST answers
"""
