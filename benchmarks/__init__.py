"""Numbers of this machine, each beside a baseline measured in the same run (`make bench`)."""
