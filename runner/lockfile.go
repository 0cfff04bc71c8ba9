package runner

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"trainer/recipe"
)

// Entries of a lock that say more than a hash.
const (
	lockRevision = "revision." // before a name on the hub: the commit that its revision was
	lockValue    = "recipe."   // before a key of the recipe: its value
	lockBinary   = "binary"
	lockBackend  = "backend"
)

// LockPath is where the lock of a recipe stands: recipe.lock.yaml beside recipe.yaml.
func LockPath(path string) string {
	return strings.TrimSuffix(path, filepath.Ext(path)) + ".lock.yaml"
}

// IsLockFile says whether a path is one that LockPath makes.
func IsLockFile(path string) bool { return strings.HasSuffix(path, ".lock.yaml") }

// LockFile is what holds later runs to these inputs: the lock of the plan, and the values of the recipe, so that a difference has a
// name. What runs it, the sandbox or the service, is not in it.
func (in *Inputs) LockFile(p *Plan) Lock {
	l := RecipeLock(in.Recipe)
	maps.Copy(l, p.Lock)
	delete(l, lockBackend)
	return l
}

// RecipeLock is what a lock says of a recipe alone: the hash, and the values that it covers.
func RecipeLock(r *recipe.Recipe) Lock {
	l := Lock{"recipe": r.Hash()}
	for key, text := range r.Values() {
		if !strings.Contains(key, ": ") { // such a key of a map would not be read back; the hash covers it
			l[lockValue+key] = text
		}
	}
	return l
}

// Recipe are the entries of a lock that RecipeLock makes.
func (l Lock) Recipe() Lock {
	out := maps.Clone(l)
	maps.DeleteFunc(out, func(name, _ string) bool { return name != "recipe" && !strings.HasPrefix(name, lockValue) })
	return out
}

// Save writes the lock file.
func (l Lock) Save(path string) error {
	text := append([]byte("# made by `trainer lock`; `trainer run --locked` refuses what differs\n"), l.text()...)
	part, err := os.CreateTemp(filepath.Dir(path), ".lock-*")
	if err != nil {
		return fmt.Errorf("write the lock: %w", err)
	}
	defer func() { _ = os.Remove(part.Name()) }()
	_, err = part.Write(text)
	err = errors.Join(err, part.Chmod(0o644), part.Close())
	if err == nil {
		err = os.Rename(part.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write the lock: %w", err)
	}
	return nil
}

// ReadLockFile reads a lock, which must be there.
func ReadLockFile(path string) (Lock, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is not there; `trainer lock` makes it", path)
	}
	if err != nil {
		return nil, fmt.Errorf("read the lock: %w", err)
	}
	l, err := parseLock(b)
	if err != nil {
		return nil, fmt.Errorf("%s:%w", path, err)
	}
	if l["recipe"] == "" {
		return nil, fmt.Errorf("%s is not a lock: it has no hash of a recipe", path)
	}
	return l, nil
}

// parseLock is strict: a line that is cut or edited is no drift of the inputs.
func parseLock(b []byte) (Lock, error) {
	l := Lock{}
	s := bufio.NewScanner(bytes.NewReader(b))
	s.Buffer(nil, 16<<20)
	for n := 1; s.Scan(); n++ {
		line := s.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, ": ")
		if _, twice := l[name]; !ok || twice {
			return nil, fmt.Errorf("%d: is no line of a lock, `name: value`, each name once", n)
		}
		l[name] = value
	}
	return l, s.Err()
}

// Pins are the commits of the lock, for the hub to take in place of what a branch is now.
func (l Lock) Pins() map[string]string {
	out := map[string]string{}
	for name, commit := range l {
		if ref, ok := strings.CutPrefix(name, lockRevision); ok {
			out[ref] = commit
		}
	}
	return out
}

// Difference is an entry that two locks, or two recipes, do not have alike; a value is empty where one has none.
type Difference struct {
	Name string `json:"name"`
	A    string `json:"a"`
	B    string `json:"b"`
}

// Text is the difference on a line, with what to call the two sides.
func (d Difference) Text(a, b string) string {
	const none = "none"
	was, is := d.A, d.B
	if was == "" {
		was = none
	}
	if is == "" {
		is = none
	}
	return fmt.Sprintf("%s: %s %s, %s %s", d.Name, a, was, b, is)
}

// Compare lists what differs, in order of the names. What decides no result is left out: which binary, which run, where it runs.
// Values of the recipe stand in place of its hash where both locks have them.
func (l Lock) Compare(now Lock) (out []Difference) {
	names := map[string]bool{}
	for name := range l {
		names[name] = true
	}
	for name := range now {
		names[name] = true
	}
	values := l.hasValues() && now.hasValues()
	named := false
	for _, name := range slices.SortedFunc(maps.Keys(names), byParts) {
		isValue := strings.HasPrefix(name, lockValue)
		switch {
		case l[name] == now[name], slices.Contains([]string{lockBinary, lockBackend, lockRun, "wire"}, name):
			continue
		case isValue && (!values || l["recipe"] == now["recipe"]):
			continue
		}
		named = named || isValue
		out = append(out, Difference{name, l[name], now[name]})
	}
	if named {
		out = slices.DeleteFunc(out, func(d Difference) bool { return d.Name == "recipe" })
	}
	return out
}

func (l Lock) hasValues() bool {
	for name := range l {
		if strings.HasPrefix(name, lockValue) {
			return true
		}
	}
	return false
}

// byParts orders dotted names, numbers in them by their size.
func byParts(a, b string) int {
	return slices.CompareFunc(strings.Split(a, "."), strings.Split(b, "."), func(x, y string) int {
		n, nerr := strconv.Atoi(x)
		m, merr := strconv.Atoi(y)
		if nerr == nil && merr == nil {
			return n - m
		}
		return strings.Compare(x, y)
	})
}

// Hold compares the inputs with the lock at path. The error is a *Drift.
func (l Lock) Hold(path string, in *Inputs, p *Plan) error {
	d := &Drift{Dir: path, Way: "put the inputs back, or accept the change with `trainer lock`"}
	for _, diff := range l.Compare(in.LockFile(p)) {
		d.Diff = append(d.Diff, diff.Text("was", "is"))
	}
	if len(d.Diff) == 0 {
		return nil
	}
	return d
}

// Inputs are the entries of what was opened: all but the values of the recipe, which it says itself.
func (l Lock) Inputs() Lock {
	out := maps.Clone(l)
	maps.DeleteFunc(out, func(name, _ string) bool { return strings.HasPrefix(name, lockValue) })
	return out
}
