package fault

// Kind is a fault by its name.
type Kind string

// The faults.
const (
	Latency         Kind = "latency"
	TooManyRequests Kind = "too-many-requests"
	ServerError     Kind = "server-error"
	Unauthorized    Kind = "unauthorized"
	StaleAddress    Kind = "stale-address"
	RefuseStop      Kind = "refuse-stop"
	Drop            Kind = "drop"
	SlowBody        Kind = "slow-body"
	Truncate        Kind = "truncate"
	Fail            Kind = "fail"
	Reorder         Kind = "reorder"
	ForgetKey       Kind = "forget-key"
	ForgetOperation Kind = "forget-operation"
	SlowPublish     Kind = "slow-publish"
	ExpireSession   Kind = "expire-session"
	StepZero        Kind = "step-zero"
	LaggingStep     Kind = "lagging-step"
	Queue           Kind = "queue"
	ResourceError   Kind = "resource-error"
	LateCreate      Kind = "late-create"
	DoubleCreate    Kind = "double-create"
	NoCredit        Kind = "no-credit"
	JobError        Kind = "job-error"
)

// Labels of events, besides their names, that a rule can be put on.
const (
	Any        = "any"
	Reads      = "reads"      // GET
	Writes     = "writes"     // every other method
	Operations = "operations" // the POST of an operation
	Polls      = "polls"      // the GET of an operation
	Creates    = "creates"    // of a resource, a session or a job
	Stops      = "stops"      // of a resource or a session; the cancelling of a job
	Paid       = "paid"       // what a project's credit must cover, and its estimate
	Payloads   = "payloads"   // uploads, downloads and their addresses
)

// Info describes a kind.
type Info struct {
	Kind Kind
	// On is where it happens unless a rule says where; Within is where it can happen at all, labels joined by +.
	On, Within string
	Keys       []string // besides those that every rule has
	Does       string
}

const delay = "fixed|uniform|exponential"

// Kinds lists every fault, in the order of documents.
func Kinds() []Info {
	return []Info{
		{Latency, Any, Any, []string{delay, "when"}, "the answer comes late, by 1s: the work waits (before), or it is done and its answer waits (after)"},
		{TooManyRequests, Any, Any, []string{"retry_after"}, "429, with Retry-After in seconds (1s; 0s leaves it out); nothing is done"},
		{ServerError, Any, Any, []string{"status", "when", "retry_after"}, "a 5xx (500), before or after the work is done"},
		{Unauthorized, Any, Any, nil, "401, as after a key was withdrawn; nothing is done"},
		{StaleAddress, "get-file", "get-file+get-payload+put-payload", nil, "403, as of a presigned address that has expired; nothing is done"},
		{RefuseStop, Stops, Stops, []string{"status"}, "a stop is refused (400); nothing is done"},
		{Drop, Any, Any, []string{"when"}, "the connection ends without an answer, before or after the work is done"},
		{SlowBody, Any, Any, []string{delay}, "the answer's body trickles, and takes that long (5s)"},
		{Truncate, Any, Any, []string{"bytes"}, "the answer's body ends early, with the connection: after so many bytes, or in its middle; the work is done"},
		{Fail, Operations, Operations, []string{"code", "leaves"}, "the operation ends FAILED with the code (INTERNAL_ERROR), and leaves behind: nothing; gradient, that of the first half of its samples; step, an optimiser step that was applied. Unset: as the choice failed_leaves"},
		{Reorder, Operations, Operations, []string{"after"}, "the operation does not begin until the next one of its session has overtaken it, or so long (2s) has passed"},
		{ForgetKey, Operations, Operations, []string{"after"}, "so long (0s) after it was accepted, the operation's key is forgotten: the same request makes a second operation"},
		{ForgetOperation, Operations, Operations, []string{"after"}, "so long (0s) after its end, the operation is answered with 404"},
		{SlowPublish, "weights-sync", "weights-sync", []string{delay}, "the generators take so long (5s) until they serve the new weights; a synchronous weights-sync takes as long"},
		{ExpireSession, "create-session", Operations + "+create-session", []string{"after"}, "so long (0s) after the request, its session is EXPIRED, and what has not begun in it FAILED"},
		{StepZero, "create-session", "create-session", nil, "a session that resumes counts its steps from 0"},
		{LaggingStep, "get-session", "get-session", []string{"by"}, "session.step is so many steps (1) late"},
		{Queue, "create-resource", "create-resource", []string{delay, "position"}, "the resource waits so long (60s) for its GPUs, at first at that place (1) of the queue"},
		{ResourceError, "create-resource", "create-resource", []string{"code", "after"}, "so long (0s) after its create the resource is in ERROR, with the code (CAPACITY_WAIT_TIMEOUT)"},
		{LateCreate, Creates, Creates, []string{"after"}, "what was created is in no list until so long (30s) has passed"},
		{DoubleCreate, Creates, Creates, nil, "the create is carried out twice, and answered once"},
		{NoCredit, Paid, Paid, nil, "402, for the project can't pay; an estimate says so. Nothing is done"},
		{JobError, "prepare-for-fp4-inference", "prepare-for-fp4-inference", []string{"code", "after"}, "so long (0s) after its create the job has failed: SHAPING_ERROR, or SHAPING_USER_ERROR as if by the caller's fault"},
	}
}

// Codes of FAILED operations and of resources in ERROR, without prefix, and the events that end failed jobs.
func operationCodes() []string {
	return []string{"RESOURCE_EXHAUSTED", "TIMEOUT", "INTERNAL_ERROR", "SESSION_NOT_ACTIVE", "INVALID_INPUT", "NON_FINITE_LOSS"}
}

func jobCodes() []string { return []string{"SHAPING_ERROR", "SHAPING_USER_ERROR"} }

func resourceCodes() []string {
	return []string{"CAPACITY_WAIT_TIMEOUT", "PROVISIONING_FAILED", "RESOURCE_UNAVAILABLE"}
}
