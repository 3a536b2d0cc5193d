"""What people and other programs hold in their hands: each an extra, each using the public names only."""
