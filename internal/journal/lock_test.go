//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package journal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// holdFolder, when set, makes the test binary a process that holds a folder until it is killed or its input ends.
const holdFolder = "JOURNAL_TEST_HOLD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdFolder); dir != "" {
		os.Exit(hold(dir))
	}
	os.Exit(m.Run())
}

func hold(dir string) int {
	j, _, err := Open(dir)
	if err == nil {
		err = j.Append("life", Owner().fields())
	}
	if err == nil {
		err = j.Add("note", note{"not synced", 1})
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("held")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

func (id LifeID) fields() any {
	return struct {
		PID int `json:"pid"`
	}{id.PID}
}

// holder starts a process that has dir open.
func holder(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), holdFolder+"="+dir)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = c.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	return c
}

func TestTheLockHoldsBetweenProcessesAndDiesWithIts(t *testing.T) {
	dir := t.TempDir()
	other := holder(t, dir)
	_, _, err := Open(dir)
	var locked *Locked
	if !errors.As(err, &locked) {
		t.Fatalf("got %v, want *Locked", err)
	}
	if want := (Locked{dir, other.Process.Pid, Owner().Host}); *locked != want {
		t.Errorf("got %+v, want %+v", *locked, want)
	}
	if records, err := Read(dir); err != nil || len(records) != 2 {
		t.Errorf("Read beside the writer: %d records, %v", len(records), err)
	}
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait() // it was killed
	mustClose(t, mustOpen(t, dir, 2))
}

func TestTheLockHoldsInOneProcess(t *testing.T) {
	dir := t.TempDir()
	j := mustOpen(t, dir, 0)
	var locked *Locked
	if _, _, err := Open(dir); !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Errorf("got %v, want *Locked by this process", err)
	}
	mustClose(t, j)
	mustClose(t, mustOpen(t, dir, 0))
}

func TestALockFileThatSaysNothingIsStillALock(t *testing.T) {
	dir := t.TempDir()
	j := mustOpen(t, dir, 0)
	defer mustClose(t, j)
	if err := os.Truncate(filepath.Join(dir, lockName), 0); err != nil {
		t.Fatal(err)
	}
	var locked *Locked
	if _, _, err := Open(dir); !errors.As(err, &locked) || locked.PID != 0 {
		t.Errorf("got %v, want *Locked by nobody known", err)
	}
}

func TestACopyOfAFolderIsToldApart(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	if err := os.Mkdir(a, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(b, os.DirFS(a)); err != nil {
		t.Fatal(err)
	}
	device, inode, err := Folder(a)
	if err != nil {
		t.Fatal(err)
	}
	if d, i, err := Folder(b); err != nil || d != device || i == inode {
		t.Errorf("the copy is %d/%d, %v; the folder %d/%d", d, i, err, device, inode)
	}
	if err := os.Rename(a, a+"-moved"); err != nil {
		t.Fatal(err)
	}
	if d, i, err := Folder(a + "-moved"); err != nil || d != device || i != inode {
		t.Errorf("moved it is %d/%d, %v; before %d/%d", d, i, err, device, inode)
	}
	if _, _, err := Folder(a); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing folder: %v", err)
	}
}

func TestOwnerIsThisProcess(t *testing.T) {
	id, again := Owner(), Owner()
	if id.PID != os.Getpid() || id != again {
		t.Errorf("got %+v, then %+v", id, again)
	}
}
