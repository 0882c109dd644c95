"""What a script hands to `Trainer`, as the parts that the loop calls."""
