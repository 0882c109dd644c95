"""The points of the loop at which plugins act: declared, found, called, and operations registered at them."""
