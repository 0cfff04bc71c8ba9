package journal

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// lockPoll is how often a lock that another process has is tried again.
const lockPoll = 100 * time.Millisecond

// Alone holds the lock of the file at path, which it makes with its folder, until free is called or the process ends. Where
// another process has it, it waits as long as ctx lasts, and then returns its cause. The file stays.
func Alone(ctx context.Context, path string) (free func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the lock: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock: %w", err)
	}
	for {
		taken, err := tryLock(f)
		if err != nil {
			_ = f.Close() // the first error says more
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		if taken {
			return func() { _ = f.Close() }, nil
		}
		select {
		case <-time.After(lockPoll):
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("waiting for %s, which another process holds: %w", path, context.Cause(ctx))
		}
	}
}
