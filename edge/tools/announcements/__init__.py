"""What the daemon tells the wearer by itself: alarms, reminders, new mail."""
