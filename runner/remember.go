package runner

import "fmt"

// remember has the machine know of this run before it asks for what bills, so that what it leaves behind is found without
// it. Where that cannot be written, the run says so and goes on.
func (r *run) remember() {
	if r.world.Remember == nil {
		return
	}
	if err := r.world.Remember(r.past.run.RunID); err != nil {
		r.tell(Event{Kind: WarnEvent, Done: r.from, Text: fmt.Sprintf("%v; should this run die, `trainer resources gc` finds what it leaves only by --runs-dir", err)})
	}
}
