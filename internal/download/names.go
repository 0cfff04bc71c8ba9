package download

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// longestName leaves room for what is appended while a file is not whole.
const longestName = 240

// unsafe says why a file of that name is not written, "" when it is: it comes from elsewhere, and must stay in its folder
// on every system.
func unsafe(name string) string {
	switch {
	case name == "":
		return "is empty"
	case len(name) > longestName:
		return fmt.Sprintf("is longer than %d bytes", longestName)
	case !utf8.ValidString(name):
		return "is not UTF-8"
	case strings.ContainsAny(name, `/\:`):
		return "has a separator of paths in it"
	case strings.ContainsFunc(name, unicode.IsControl):
		return "has control characters"
	case !filepath.IsLocal(name) || strings.Trim(name, ". ") == "":
		return "is no name of a file"
	case strings.EqualFold(name, RecordName) || strings.HasSuffix(strings.ToLower(name), partEnd):
		return "is a name that downloads use themselves"
	}
	return ""
}

// check refuses a list of files that cannot be written as it is.
func check(files []File) error {
	seen := map[string]bool{}
	for _, f := range files {
		if why := unsafe(f.Name); why != "" {
			return fmt.Errorf("file name %q %s: nothing is downloaded", f.Name, why)
		}
		folded := strings.ToLower(f.Name)
		if seen[folded] {
			return fmt.Errorf("file name %q stands twice in the list (large and small letters are the same on some disks): nothing is downloaded", f.Name)
		}
		if seen[folded] = true; f.Size < 0 {
			return fmt.Errorf("file %q: a size of %d bytes", f.Name, f.Size)
		}
	}
	if len(files) == 0 {
		return fmt.Errorf("the service lists no files")
	}
	return nil
}
