"""Building parts one after another, each seeing those before it, and opening what they are saved with."""
