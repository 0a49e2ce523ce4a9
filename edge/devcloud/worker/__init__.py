"""The worker of the small cloud: takes calls, runs mini-apps, answers once."""
