"""The games of MinAtar (Young and Tian, 2019, arXiv 1903.03176), a file for each."""
