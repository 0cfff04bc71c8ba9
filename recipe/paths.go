package recipe

import (
	"path/filepath"
	"strings"
)

// remote says whether a source is at an address rather than in a folder.
func remote(path string) bool { return strings.Contains(path, "://") }

// isPath says whether the value of tokenizer or chat.template names a local file or folder.
func isPath(k *Key, value string) bool {
	if value == "" || value == k.Default || remote(value) || strings.ContainsAny(value, "\n{") {
		return false
	}
	if k.Path == "chat.template" {
		return isTemplateFile(value)
	}
	return true
}

// absolute is path from the root; it stays as it is where the working directory is not known.
func absolute(dir, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
