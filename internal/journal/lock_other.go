//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package journal

import (
	"fmt"
	"os"
	"runtime"
)

// tryLock refuses: two runs in one folder would train one model twice, so without a lock there is no run.
func tryLock(*os.File) (bool, error) { return false, unsupported() }

// Folder returns what tells dir from a copy of it; here it is an error.
func Folder(string) (device, inode uint64, err error) { return 0, 0, unsupported() }

func syncFolder(string) error { return unsupported() }

func unsupported() error {
	return fmt.Errorf("run folders need a lock that dies with its process, which is taken on Linux, macOS and the BSDs and not on %s; on Windows use WSL", runtime.GOOS)
}
