"""
What an application is made of: the template, the workflow and the functions that the package comes with.

sources
    Where these files are, in a checkout and in an installed package.
"""
