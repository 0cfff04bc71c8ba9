package hub

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// match returns the names of the files that the pattern name fits, sorted, each as the pattern spells its folder. The
// folder before the first wildcard is taken as it is, so that a [ in dir is no wildcard.
func match(name, dir string) ([]string, error) {
	folder, pattern := split(filepath.ToSlash(name))
	if strings.Contains(pattern, "**") {
		return nil, fmt.Errorf("%s: ** is not supported; * stays within one folder, so name each folder as a source of its own", name)
	}
	if slices.Contains(strings.Split(pattern, "/"), "..") {
		return nil, fmt.Errorf("%s: .. cannot follow a wildcard", name)
	}
	base := under(dir, filepath.FromSlash(folder))
	if folder == "" {
		base = cmp.Or(dir, ".")
	}
	found, err := fs.Glob(os.DirFS(base), path.Clean(pattern))
	if err != nil {
		return nil, fmt.Errorf("%s: a [ without its ]; it opens a set of characters", name)
	}
	found = slices.DeleteFunc(found, func(f string) bool { return hidden(f, pattern) || isFolder(filepath.Join(base, f)) })
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: no file matches in %s%s", name, base, listing(base))
	}
	slices.Sort(found)
	for i, f := range found {
		found[i] = filepath.FromSlash(folder + f)
	}
	return found, nil
}

// split cuts behind the last / before the first wildcard: "a/b*/c" is "a/" and "b*/c".
func split(name string) (folder, pattern string) {
	i := strings.LastIndex(name[:strings.IndexAny(name, "*?[")], "/") + 1
	return name[:i], name[i:]
}

// hidden tells whether a part of f begins with a dot that the pattern does not spell, as in a shell.
func hidden(f, pattern string) bool {
	parts := strings.Split(path.Clean(pattern), "/")
	for i, part := range strings.Split(f, "/") {
		if strings.HasPrefix(part, ".") && !strings.HasPrefix(parts[i], ".") {
			return true
		}
	}
	return false
}

func isFolder(p string) bool {
	info, err := os.Stat(p)
	return err == nil && info.IsDir()
}

// listing is what a folder has, for a pattern that fits nothing.
func listing(base string) string {
	entries, err := os.ReadDir(base)
	switch {
	case err != nil:
		return fmt.Sprintf(" (%v)", plain(err))
	case len(entries) == 0:
		return ", which is empty"
	}
	names := make([]string, 0, 6)
	for i, e := range entries {
		if i == 5 {
			names = append(names, "…")
			break
		}
		names = append(names, e.Name())
	}
	return ", which has " + strings.Join(names, ", ")
}
