"""
What an application is made of, and writing a new one.

sources
    Where the template, the workflow and the functions are, in a checkout and in an installed package.
installation
    The part of an application that belongs to steponce: its files, and what was edited among them.
workflow
    The state machine of a new application.
render
    The values and choices of a new application, put into its files.
application
    Writes a new application.
upgrade
    Replaces the installation of an application.
"""
