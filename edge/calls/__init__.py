"""One call in, exactly one answer out: admission, execution, delivery."""
