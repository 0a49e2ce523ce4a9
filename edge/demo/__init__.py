"""`glassd demo`: mock glasses, a small cloud and the daemon as three processes, and a person
(or a script) before them.
"""
