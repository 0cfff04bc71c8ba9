//go:build !darwin && !linux

package journal

func bootID() string { return "" }
