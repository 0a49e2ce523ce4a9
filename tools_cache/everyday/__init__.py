"""Shared code of the everyday tools: what several handlers of one package use."""
