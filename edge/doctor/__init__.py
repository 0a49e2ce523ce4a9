"""`glassd doctor`: a ladder of numbered checks of this machine, each with the exact fix. Nobody
imports it but its verb.
"""
