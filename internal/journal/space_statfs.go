//go:build darwin || linux

package journal

import "syscall"

// Space is how many bytes can still be written to the disk of dir; false where the system does not tell.
func Space(dir string) (int64, bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
