"""Stand-ins for AWS: in memory, as strict as AWS where the code depends on it, and able to fail."""
