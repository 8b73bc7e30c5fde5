"""
HTTP servers on the loopback interface.

    loopback  keeps web pages away
    server    serves a WSGI application on a free port
"""
