package wire

import "time"

// Paths of FP4 preparation. A new job is POSTed to PathPrepareFP4, its price is asked at PathPrepareFP4/estimate; neither
// takes a key.
const (
	PathShaping    = "/v1/shaping"
	PathPrepareFP4 = PathShaping + "/prepare-for-fp4-inference"
)

// PrepareFP4 is the body of a new job and of its estimate. Inputs is required.
type PrepareFP4 struct {
	Inputs *QuantizationInputs `json:"inputs"`
}

// QuantizationInputs names the model that is prepared, one that training has registered: by ModelObjectID, or by its older
// name AdapterObjectID.
type QuantizationInputs struct {
	ModelObjectID     string `json:"model_object_id,omitempty"`
	ModelRevisionID   string `json:"model_revision_id,omitempty"` // only with ModelObjectID; empty: the current one
	CalibrationFileID string `json:"calibration_file_id,omitempty"`
	AdapterObjectID   string `json:"adapter_object_id,omitempty"`
}

// QuantizationEstimate is what a job would cost.
type QuantizationEstimate struct {
	PriceUSD         float64 `json:"price_usd"`
	TimeHours        float64 `json:"time_hours"`   // without the queue
	CreditLimit      float64 `json:"credit_limit"` // of the project, US dollars
	AllowedToProceed bool    `json:"allowed_to_proceed"`
}

// JobStatus is an enum; the service has "pending" as well.
type JobStatus string

// The states of a job. JobUserError is a failure that the caller's inputs brought about.
const (
	JobQueued          JobStatus = "queued"
	JobRunning         JobStatus = "running"
	JobCompleted       JobStatus = "completed"
	JobCancelRequested JobStatus = "cancel_requested"
	JobCancelled       JobStatus = "cancelled"
	JobError           JobStatus = "error"
	JobUserError       JobStatus = "user_error"
)

// JobEventType is an enum.
type JobEventType string

// The events of a job, in the order in which a job that completes has them; the first two end one that fails.
const (
	EventError            JobEventType = "SHAPING_ERROR"
	EventUserError        JobEventType = "SHAPING_USER_ERROR"
	EventJobStart         JobEventType = "QUANTIZATION_JOB_START"
	EventDownloadComplete JobEventType = "QUANTIZATION_MODEL_DOWNLOAD_COMPLETE"
	EventMergeComplete    JobEventType = "QUANTIZATION_MERGE_COMPLETE"
	EventQuantizeStart    JobEventType = "QUANTIZATION_QUANTIZE_PROCESS_START"
	EventQuantizeComplete JobEventType = "QUANTIZATION_QUANTIZE_PROCESS_COMPLETE"
	EventUploadComplete   JobEventType = "QUANTIZATION_MODEL_UPLOAD_COMPLETE"
	EventJobComplete      JobEventType = "QUANTIZATION_JOB_COMPLETE"
)

// JobEventLevel is an enum.
type JobEventLevel string

// The levels of events.
const (
	LevelInfo    JobEventLevel = "Info"
	LevelWarning JobEventLevel = "Warning"
	LevelError   JobEventLevel = "Error"
)

// JobEvent is one line of a job's history.
type JobEvent struct {
	Object    string               `json:"object"` // "shaping"
	Type      JobEventType         `json:"type"`
	Level     JobEventLevel        `json:"level"`
	Message   string               `json:"message"`
	CreatedAt time.Time            `json:"created_at"`
	Hash      string               `json:"hash,omitempty"` // equal for the same event of the same job
	Result    *QuantizationResults `json:"result,omitempty"`
}

// QuantizationResults is the model that a job registered.
type QuantizationResults struct {
	ModelObjectID   string `json:"model_object_id,omitempty"`
	ModelRevisionID string `json:"model_revision_id,omitempty"`
}

// QuantizationParams is what a job does: what was asked for, and what the service made of it.
type QuantizationParams struct {
	Inputs        QuantizationInputs        `json:"inputs"`
	Configuration QuantizationConfiguration `json:"configuration"`
}

// QuantizationConfiguration names the model that is prepared and the base model that it was trained from.
type QuantizationConfiguration struct {
	BaseModelName   string `json:"base_model_name"`
	BaseObjectID    string `json:"base_object_id"`
	BaseRevisionID  string `json:"base_revision_id"`
	ModelName       string `json:"model_name"`
	ModelProjectID  string `json:"model_project_id"`
	ModelRevisionID string `json:"model_revision_id"`
	UserID          string `json:"user_id"`
}

// QuantizationJob prepares a trained model for FP4 inference.
type QuantizationJob struct {
	ID        string               `json:"id"`       // shp-quant-…
	JobType   string               `json:"job_type"` // "quantization"
	Status    JobStatus            `json:"status"`
	UserID    string               `json:"user_id"`
	CreatedAt time.Time            `json:"created_at"`
	UpdatedAt time.Time            `json:"updated_at"`
	Events    []JobEvent           `json:"events"` // oldest first; never nil in an answer
	Params    QuantizationParams   `json:"params"`
	Results   *QuantizationResults `json:"results,omitempty"` // only of a completed one
}

// List is an answer that is not paged.
type List[T any] struct {
	Object string `json:"object"` // "list"
	Data   []T    `json:"data"`   // never nil in an answer
}
