package runner

import "time"

// journalFormat is the newest format of journal that this binary writes and reads.
const journalFormat = 1

// The types of journal records. Their members are a contract: later versions read these journals.
const (
	recRun        = "run"
	recLife       = "life"
	recPlan       = "plan"
	recCreate     = "create"
	recCreated    = "created"
	recNotCreated = "not_created"
	recReady      = "ready"
	recSession    = "session"
	recWitness    = "witness"
	recIntent     = "intent"
	recAck        = "ack"
	recResult     = "result"
	recStep       = "step"
	recEval       = "eval"
	recCheckpoint = "checkpoint"
	recForget     = "forget"
	recMeter      = "meter"
	recStop       = "stop"
	recStopped    = "stopped"
	recEnd        = "end"
	recSalvage    = "salvage"
	recBatch      = "batch"
	recRollout    = "rollout"
	recScored     = "scored"
	recTeacher    = "teacher"
	recUnfit      = "unfit"
)

type runRecord struct {
	Format     int     `json:"format"`
	RunID      string  `json:"run_id"`
	RecipeHash string  `json:"recipe_hash"`
	LockHash   string  `json:"lock_hash"`
	Parent     *parent `json:"parent,omitempty"`
}

// parent is where a run begins that does not begin at the base model's weights. Done and Updates are the steps that it counts
// as its own: of a fork.
type parent struct {
	RunID        string `json:"run_id,omitempty"`
	CheckpointID string `json:"checkpoint_id"`
	Done         int    `json:"done"`
	Updates      int    `json:"updates,omitempty"`
}

type lifeRecord struct {
	PID       int        `json:"pid"`
	Host      string     `json:"host"`
	BootID    string     `json:"boot_id"`
	Binary    string     `json:"binary"`
	Reason    string     `json:"reason"` // run, resume
	Folder    folderMark `json:"folder"`
	LockHash  string     `json:"lock_hash"`
	Steps     int        `json:"steps"`
	TornBytes int64      `json:"torn_bytes"`
	TakeOver  bool       `json:"takeover"` // the folder is a copy, or stands on another machine
}

type folderMark struct {
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
}

// decided is the plan record: what the service's limits decided once for the whole run.
type decided struct {
	GPUType      string  `json:"gpu_type"`
	MaxBatch     int     `json:"max_batch_size"`
	Accumulation int     `json:"gradient_accumulation"` // 0: as few as max_batch_size allows
	StandIn      bool    `json:"stand_in"`
	PriceUSD     float64 `json:"price_usd_per_hour"`
	// Teacher is of the teacher's resource; nil where it has none of its own.
	Teacher *decidedTeacher `json:"teacher,omitempty"`
}

type decidedTeacher struct {
	GPUType  string  `json:"gpu_type"`
	MaxBatch int     `json:"max_batch_size"`
	PriceUSD float64 `json:"price_usd_per_hour"`
}

// price is of the student's resource, or of the teacher's.
func (d decided) price(what string) float64 {
	switch {
	case what == aResource:
		return d.PriceUSD
	case d.Teacher == nil:
		return 0
	}
	return d.Teacher.PriceUSD
}

// What a create makes.
const (
	aResource = "resource"
	aSession  = "session"
	// aReference is a session that a run which samples compares with, beside the one that trains.
	aReference = "reference session"
	aTeacher   = "teacher" // the resource of a teacher, which stands in a journal as that of the student does
)

// createRecord: Known and ServerTime are of a resource, Gen, From and Reason of a session.
type createRecord struct {
	What       string    `json:"what"`
	Attempt    int       `json:"attempt"`
	Body       any       `json:"body"`                 // resourceBody, sessionBody
	Known      []string  `json:"known,omitzero"`       // ids that were there before
	ServerTime time.Time `json:"server_time,omitzero"` // when they were listed
	Gen        *int      `json:"gen,omitempty"`
	From       *origin   `json:"from,omitempty"`
	Reason     string    `json:"reason,omitempty"`
	Skip       []int     `json:"skip,omitempty"` // steps that the session leaves out, also those that earlier ones did
}

// resourceBody and sessionBody are what a create asks for, under the API's names, so that a later life can tell what it
// made from what others did. InactiveTimeout is in seconds, with the tag of the run in it.
type resourceBody struct {
	BaseModel       string `json:"base_model"`
	BaseWeightsRef  string `json:"base_weights_ref,omitempty"`
	GPUType         string `json:"gpu_type"`
	Generators      int    `json:"num_generator_replicas"`
	LoRA            bool   `json:"lora_enabled"`
	Muon            string `json:"muon_scaling_strategy,omitempty"`
	InactiveTimeout int64  `json:"inactive_timeout"`
}

type sessionBody struct {
	Resource    string `json:"model_resources_id"`
	DisplayName string `json:"display_name"`
	From        string `json:"resume_from_checkpoint_id,omitempty"`
	LoRASeed    *int64 `json:"lora_seed,omitempty"` // nil: full weights
}

func bodyOf(s ResourceSpec) resourceBody {
	return resourceBody{s.BaseModel, s.BaseWeightsRef, s.GPUType, s.Generators, s.LoRA, s.Muon, int64(s.InactiveTimeout / time.Second)}
}

func sessionBodyOf(s SessionSpec) sessionBody {
	b := sessionBody{Resource: s.Resource, DisplayName: s.DisplayName, From: s.From}
	if s.LoRA != nil {
		b.LoRASeed = &s.LoRASeed
	}
	return b
}

// origin is where a session starts: a checkpoint of ours and the steps in it; an empty id is the base weights.
type origin struct {
	CheckpointID string `json:"checkpoint_id"`
	Done         int    `json:"done"`
	Updates      int    `json:"updates"`
}

type createdRecord struct {
	What     string  `json:"what"`
	Attempt  int     `json:"attempt"`
	ID       string  `json:"id"`
	How      string  `json:"how"` // answer, adopted, attached
	PriceUSD float64 `json:"price_usd_per_hour,omitempty"`
	Pinned   string  `json:"base_weights_ref,omitempty"`
}

// whySettled is what was looked for, and not seen.
const whySettled = "settled"

type notCreatedRecord struct {
	What    string `json:"what"`
	Attempt int    `json:"attempt"`
	Why     string `json:"why"` // refused, settled, its resource is gone
}

type readyRecord struct {
	Resource string    `json:"resource"`
	ReadyAt  time.Time `json:"ready_at"`
}

// Whether the service answers a key that it knows with what it did before.
const (
	keysHonoured = "honoured"
	keysIgnored  = "ignored"
)

type sessionRecord struct {
	Gen          int    `json:"gen"`
	ID           string `json:"id"`
	Step0        int64  `json:"step0"`
	TrainerStep0 int64  `json:"trainer_step0"`
	Applied0     int64  `json:"applied0"`
	Keys         string `json:"keys"` // honoured, ignored
}

type witnessRecord struct {
	Session string `json:"session"`
	Key     string `json:"key"`
	Op      string `json:"op"`
}

type intentRecord struct {
	Session   string `json:"session"`
	Pos       int    `json:"pos"`
	Step      int    `json:"step"`
	Kind      string `json:"kind"`
	Index     int    `json:"index"`
	Attempt   int    `json:"attempt"`
	Key       string `json:"key"`
	Body      string `json:"body_sha256"`
	PayloadID string `json:"payload_id,omitempty"`
	Expect    int    `json:"expect"`
}

type ackRecord struct {
	Key string `json:"key"`
	Op  string `json:"op"`
}

type resultRecord struct {
	Key        string             `json:"key"`
	Status     string             `json:"status"` // COMPLETED, FAILED
	Code       string             `json:"code,omitempty"`
	How        string             `json:"how"`            // answer, inferred
	Loss       *float64           `json:"loss,omitempty"` // of a forward_backward
	Metrics    map[string]float64 `json:"metrics,omitempty"`
	Step       int64              `json:"step,omitempty"`
	Version    int64              `json:"version,omitempty"`
	Checkpoint *SavedCheckpoint   `json:"checkpoint,omitempty"`
	TokenLoss  *float64           `json:"token_loss,omitempty"` // Σ w·(−ℓ) where log-probabilities came back
	Out        string             `json:"out_sha256,omitempty"` // of the file that keeps the log-probabilities, or what was sampled
}

// batchRecord is what a rollout batch is about to sample: prompts, for the first time or (Draw above 0) once more, under the
// weights of Version optimiser steps of the lineage.
type batchRecord struct {
	Batch   int    `json:"batch"`
	Draw    int    `json:"draw"`
	Prompts string `json:"prompts_sha256"`
	Version int    `json:"version"`
}

// teacherRecord is a session of a teacher that is about to be made. It holds nothing that a later life needs, so its name is
// all that is kept of it: what is found under it is closed.
type teacherRecord struct {
	Name string      `json:"display_name"`
	Body sessionBody `json:"body"`
}

// rolloutRecord is a rollout batch that is on disk with rewards and advantages. Version counts the optimiser steps of the
// lineage in the weights that sampled it, Served is how the service counts them.
type rolloutRecord struct {
	Batch   int    `json:"batch"`
	Gen     int    `json:"gen"`
	Draws   int    `json:"draws"`
	File    string `json:"file"` // in the run folder
	SHA256  string `json:"sha256"`
	Version int    `json:"version"`
	Served  int64  `json:"weights_version"`
	Kept    int    `json:"kept"` // groups
	Dropped int    `json:"dropped"`
}

// scoredRecord is a rollout batch whose log-probabilities under the session that trains, before its first step, are on disk.
type scoredRecord struct {
	Batch  int    `json:"batch"`
	Gen    int    `json:"gen"`
	File   string `json:"file"` // in the run folder
	SHA256 string `json:"sha256"`
}

// stepRecord is a step of the lineage. Metrics are its part of the metrics line.
type stepRecord struct {
	Gen     int                `json:"gen"`
	Step    int                `json:"step"`
	Applied bool               `json:"applied"`
	Why     string             `json:"why,omitempty"`
	Updates int                `json:"updates"`
	Rows    string             `json:"rows_sha256"`
	Metrics map[string]float64 `json:"metrics"`
}

type evalRecord struct {
	Gen     int                `json:"gen"`
	Done    int                `json:"done"`
	Updates int                `json:"updates"`
	Metrics map[string]float64 `json:"metrics"`
}

// measured is a step, or an evaluation behind so many done steps, as the past keeps it. Why says that the step was left
// out, and is empty for one that was trained.
type measured struct {
	Gen, Step, Done, Updates int
	Why                      string
	Rows                     string
	Metrics                  map[string]float64
}

func (m measured) step() stepRecord {
	return stepRecord{Gen: m.Gen, Step: m.Step, Applied: m.Why == "", Why: m.Why, Updates: m.Updates, Rows: m.Rows, Metrics: m.Metrics}
}

func (m measured) eval() evalRecord { return evalRecord{m.Gen, m.Done, m.Updates, m.Metrics} }

func (s stepRecord) measured() measured {
	return measured{Gen: s.Gen, Step: s.Step, Done: s.Step + 1, Updates: s.Updates, Why: s.Why, Rows: s.Rows, Metrics: s.Metrics}
}

func (e evalRecord) measured() measured {
	return measured{Gen: e.Gen, Done: e.Done, Updates: e.Updates, Metrics: e.Metrics}
}

type checkpointRecord struct {
	Gen        int      `json:"gen"`
	Done       int      `json:"done"`
	Updates    int      `json:"updates"`
	Kind       string   `json:"kind"` // training, inference
	ID         string   `json:"id"`
	ServerStep int64    `json:"server_step"`
	Metric     *float64 `json:"metric,omitempty"`
	Registered string   `json:"registered,omitempty"`
	Revision   string   `json:"revision,omitempty"`
	Adapter    bool     `json:"adapter,omitempty"`
}

type meterRecord struct {
	Resource     string    `json:"resource"`
	ReadySeconds float64   `json:"ready_seconds"`
	CostUSD      float64   `json:"cost"`
	ServerTime   time.Time `json:"server_time"`
}

// whyTainted begins the reason of a stop of a session that must not be trained on, also where the stop did not get there.
const whyTainted = "tainted: "

// whyDisorder is the same where the reason is that the service does not keep the order of operations.
const whyDisorder = whyTainted + "out of order: "

type stopRecord struct {
	What string `json:"what"`
	ID   string `json:"id"`
	Why  string `json:"why,omitempty"`
}

// salvageRecord stands where the records behind it were damaged, and are lost.
type salvageRecord struct {
	Kept   string `json:"kept"` // the file of the damaged journal, in the run folder
	Line   int    `json:"line"`
	Offset int64  `json:"offset"`
	Bytes  int64  `json:"bytes"` // that were cut off
}

type endRecord struct {
	Outcome  string   `json:"outcome"`
	Code     string   `json:"code,omitempty"`
	Step     int      `json:"step"`
	Released []string `json:"released"`
	Unsaved  int      `json:"unsaved"`
}
