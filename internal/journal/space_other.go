//go:build !(darwin || linux)

package journal

// Space is how many bytes can still be written to the disk of dir; false where the system does not tell, as here.
func Space(string) (int64, bool) { return 0, false }
