"""Enrolment in the small cloud: codes, certificates, TLS."""
