package worker

import "runtime"

// passed are the variables that every process has.
var passed = []string{"PATH", "HOME", "LANG", "TMPDIR"}

// Environment is that of a process: a few variables that any program needs, and those that are named. Nothing else of ours is in
// it. missing are the named ones that are not set; secrets are the values of the named ones.
func Environment(getenv func(string) string, named []string) (env, secrets, missing []string) {
	names := passed
	if runtime.GOOS == "windows" {
		names = append(names[:len(names):len(names)], "SYSTEMROOT", "TEMP", "TMP", "USERPROFILE")
	}
	for _, name := range names {
		if v := getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	for _, name := range named {
		v := getenv(name)
		if v == "" {
			missing = append(missing, name)
			continue
		}
		env, secrets = append(env, name+"="+v), append(secrets, v)
	}
	return env, secrets, missing
}
