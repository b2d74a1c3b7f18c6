package wire

import "slices"

// Versions are the revisions that are spoken, newest first.
func Versions() []string { return slices.Clone(versions) }
