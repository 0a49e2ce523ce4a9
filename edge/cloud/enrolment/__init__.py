"""Enrolment: a code becomes this edge's credentials."""
