"""What the glasses say: which language, which engine, how loud."""
