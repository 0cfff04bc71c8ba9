package journal

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// LifeID says which process it is, also after a reboot that gave its number to another.
type LifeID struct {
	PID    int    `json:"pid"`
	Host   string `json:"host"`
	BootID string `json:"boot_id"` // empty where the system has none
}

// Owner returns the LifeID of this process. Host and BootID are empty when the system does not tell them.
func Owner() LifeID {
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	return LifeID{PID: os.Getpid(), Host: host, BootID: bootID()}
}

// Locked is a folder that another process has open. PID is 0 and Host empty when it did not come to saying who it is.
type Locked struct {
	Dir  string
	PID  int
	Host string
}

func (l *Locked) Error() string {
	if l.PID == 0 {
		return l.Dir + " is in use by another process"
	}
	return fmt.Sprintf("%s is in use by process %d on %s", l.Dir, l.PID, l.Host)
}

// takeLock holds dir's lock file until it is closed or the process ends, and writes into it whose it is. The file stays:
// to remove it would let two processes hold two files of one name.
func takeLock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the run folder: %w", err)
	}
	taken, err := tryLock(f)
	if err == nil && taken {
		err = sign(f)
	}
	if err != nil {
		_ = f.Close() // the first error says more
		return nil, fmt.Errorf("locking the run folder %s: %w", dir, err)
	}
	if !taken {
		defer f.Close()
		return nil, lockedBy(dir, f)
	}
	return f, nil
}

// Free returns nil when dir can be opened now, *Locked when another process, or this one, has it open. Open finds out for
// itself; this is for what has to be done before.
func Free(dir string) error {
	f, err := takeLock(dir)
	if err != nil {
		return err
	}
	return f.Close()
}

func sign(f *os.File) error {
	data, err := json.Marshal(Owner())
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(append(data, '\n'), 0)
	return err
}

func lockedBy(dir string, f *os.File) *Locked {
	var id LifeID
	data, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil || json.Unmarshal(data, &id) != nil {
		return &Locked{Dir: dir}
	}
	return &Locked{Dir: dir, PID: id.PID, Host: id.Host}
}

// Hold keeps dir as it is: no run works in it until free is called, which may be twice. *Locked where one does.
func Hold(dir string) (free func(), err error) {
	f, err := takeLock(dir)
	if err != nil {
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}
