package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"trainer/internal/wire"
)

// job is an FP4 preparation. Like a resource's, its lifecycle is a function of the clock: the log has its creation and the
// request to cancel it, nothing happens when a state is reached. No request of the API reads the model that a job
// registers, so none is quantized: the job yields what can be asked for, which is the ids.
type job struct {
	id         string
	spec       jobSpec
	checkpoint *checkpoint
	created    time.Time
	cancelled  time.Time // when that was asked for; zero: never
}

// stage is a point of a job's course, and the event that tells of it.
type stage struct {
	at      time.Time
	kind    wire.JobEventType
	level   wire.JobEventLevel
	message string
}

// starts is the end of the queue.
func (j *job) starts() time.Time { return j.created.Add(j.spec.Queue) }

// stages is the course of a job that nothing stops.
func (j *job) stages() []stage {
	part := func(tenths time.Duration) time.Time {
		return j.starts().Add((j.spec.Run * tenths / 10).Truncate(time.Microsecond))
	}
	c := j.checkpoint
	out := []stage{
		{part(0), wire.EventJobStart, wire.LevelInfo, fmt.Sprintf("preparing %s, %s@%s, for FP4 inference", c.name(), c.artifact, c.revision)},
		{part(2), wire.EventDownloadComplete, wire.LevelInfo, "the weights of " + c.name() + " are here"},
	}
	quantize := part(2)
	if c.adapter() {
		quantize = part(3)
		out = append(out, stage{quantize, wire.EventMergeComplete, wire.LevelInfo, "the adapter is merged into " + c.session.resource.spec.BaseModel})
	}
	begin := stage{quantize, wire.EventQuantizeStart, wire.LevelInfo, "quantizing"}
	if file := j.spec.Inputs.CalibrationFileID; file != "" {
		begin.level = wire.LevelWarning
		begin.message = fmt.Sprintf("quantizing; calibration file %q was not read: the sandbox keeps no files", file)
	}
	return append(out, begin,
		stage{part(9), wire.EventQuantizeComplete, wire.LevelInfo, "quantized: the sandbox takes the time for it, and computes nothing"},
		stage{part(10), wire.EventUploadComplete, wire.LevelInfo,
			fmt.Sprintf("%s@%s is registered; it has no weights, which no request could read", j.spec.Artifact, j.spec.Revision)},
		stage{part(10), wire.EventJobComplete, wire.LevelInfo, "done"},
	)
}

// end is when and how the job ends, as far as is known now. A job that runs is cancelled where its next stage ends.
func (j *job) end(stages []stage) (at time.Time, status wire.JobStatus) {
	at, status = stages[len(stages)-1].at, wire.JobCompleted
	if f := j.spec.Error; f != nil {
		if fails := j.created.Add(f.After); !fails.After(at) {
			at, status = fails, f.status()
		}
	}
	if j.cancelled.IsZero() {
		return at, status
	}
	if stops := j.stops(stages); !stops.After(at) {
		at, status = stops, wire.JobCancelled
	}
	return at, status
}

// stops is when a job that was asked to ends.
func (j *job) stops(stages []stage) time.Time {
	if j.cancelled.Before(j.starts()) {
		return j.cancelled
	}
	for _, s := range stages {
		if s.at.After(j.cancelled) {
			return s.at
		}
	}
	return j.cancelled
}

// course is the job as it is at a time.
type course struct {
	status  wire.JobStatus
	events  []wire.JobEvent
	updated time.Time
}

func (j *job) course(now time.Time) course {
	stages := j.stages()
	ends, last := j.end(stages)
	c := course{status: wire.JobQueued, events: []wire.JobEvent{}, updated: later(j.created, j.cancelled)}
	for _, s := range stages {
		if s.at.After(now) || s.at.After(ends) || last != wire.JobCompleted && !s.at.Before(ends) {
			break
		}
		c.status = wire.JobRunning
		c.add(j, s)
	}
	switch {
	case !now.Before(ends):
		c.finish(j, ends, last)
	case !j.cancelled.IsZero():
		c.status = wire.JobCancelRequested
	}
	return c
}

func (c *course) finish(j *job, at time.Time, status wire.JobStatus) {
	c.status, c.updated = status, later(c.updated, at)
	switch status {
	case wire.JobCompleted:
		c.events[len(c.events)-1].Result = j.results()
	case wire.JobError:
		c.add(j, stage{at, wire.EventError, wire.LevelError, askedFault})
	case wire.JobUserError:
		c.add(j, stage{at, wire.EventUserError, wire.LevelError, askedFault})
	}
}

func (c *course) add(j *job, s stage) {
	sum := sha256.Sum256([]byte(j.id + "\n" + string(s.kind)))
	c.events = append(c.events, wire.JobEvent{
		Object: "shaping", Type: s.kind, Level: s.level, Message: s.message, CreatedAt: s.at, Hash: hex.EncodeToString(sum[:8]),
	})
	c.updated = later(c.updated, s.at)
}

func (j *job) results() *wire.QuantizationResults {
	return &wire.QuantizationResults{ModelObjectID: j.spec.Artifact, ModelRevisionID: j.spec.Revision}
}

// show is the job in the words of the wire.
func (j *job) show(now time.Time) wire.QuantizationJob {
	c := j.course(now)
	out := wire.QuantizationJob{
		ID: j.id, JobType: "quantization", Status: c.status, UserID: user, CreatedAt: j.created, UpdatedAt: c.updated, Events: c.events,
		Params: wire.QuantizationParams{Inputs: j.spec.Inputs, Configuration: j.checkpoint.configuration()},
	}
	if c.status == wire.JobCompleted {
		out.Results = j.results()
	}
	return out
}

// project is what everything here belongs to.
const project = "proj_sandbox"

func (c *checkpoint) configuration() wire.QuantizationConfiguration {
	base := c.session.resource.spec.artifact()
	return wire.QuantizationConfiguration{
		BaseModelName: c.session.resource.spec.BaseModel, BaseObjectID: base.ID, BaseRevisionID: base.RevisionID,
		ModelName: c.name(), ModelProjectID: project, ModelRevisionID: c.revision, UserID: user,
	}
}
