"""The configuration: its model, how it is read, and how its errors are explained."""
