"""
Callbacks: steps that wait for an answer from outside.

    answer    what an answer may be, and its limits
    awaiting  the records of waiting steps
    resolver  gives each answer one verdict, and delivers what it accepts
    links     signed links that may answer one step
    page      the page behind a link: what is asked, and which answer arrived
    routes    the links' HTTP routes: GET shows the page, POST answers
"""
