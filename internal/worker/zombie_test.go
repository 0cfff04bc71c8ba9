//go:build unix

package worker

import (
	"fmt"
	"os"
	"strings"
)

// zombie says whether a process has ended and nobody has asked how, which is so where no init does.
func zombie(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	return strings.HasPrefix(rest, "Z")
}
