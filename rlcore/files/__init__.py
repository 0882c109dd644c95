"""Files that outlive a crash: replaced whole, synced, locked, grown, and reached without following links."""
