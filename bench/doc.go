// Package bench measures what the program costs beside what it waits for: how busy it keeps a GPU, what an operation
// costs the client, what checking a large dataset costs. The benchmarks are in its tests, README.md has the commands and
// the figures of one run. Nothing imports it, and nothing here asserts a time.
package bench
