"""`glassd demo`: mock glasses, a small cloud and the daemon as three processes, used by a person
or a script.
"""
