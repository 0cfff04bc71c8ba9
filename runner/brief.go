package runner

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// briefly is how long a program or an address that is being asked has left, once the run is asked to stop.
const briefly = 5 * time.Second

// brief is ctx for asking outside the program, where an answer can take an hour: briefly after the run is asked to stop it ends,
// with errHalted. What would have been answered, a later life asks for again. free lets go of it.
func (r *run) brief(ctx context.Context) (short context.Context, free func()) {
	short, cut := context.WithCancelCause(ctx)
	unwatch := context.AfterFunc(r.asked, func() {
		if sleep(short, briefly) == nil {
			cut(errHalted)
		}
	})
	return short, func() { unwatch(); cut(nil) }
}

// uncounted is of an evaluation that a stop has not waited for: behind the last step the run is not complete without it.
func (r *run) uncounted(done int) error {
	if why := context.Cause(r.asked); done >= r.until || r.plan.Evaluates {
		return why
	}
	r.tell(Event{Kind: WarnEvent, Done: done, Text: fmt.Sprintf("the evaluation at step %d is not waited for, since the run is asked to stop", done)})
	return nil
}

// isHalted says that err is of what was asked outside, and not waited for.
func isHalted(err error) bool { return errors.Is(err, errHalted) }
