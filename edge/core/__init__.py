"""Pure rules: functions and tables without await, sockets or a clock of their own."""
