"""Many texts: what a head does over a corpus."""
