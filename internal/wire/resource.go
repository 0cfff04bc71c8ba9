package wire

import (
	"strings"
	"time"
)

// CreateResource is the body of POST PathResources and of its estimate-cost. nil and empty members take the service's
// defaults.
type CreateResource struct {
	BaseModel       string           `json:"base_model"`
	BaseWeightsRef  string           `json:"base_weights_ref,omitempty"`
	ComputeConfig   *ComputeConfig   `json:"compute_config,omitempty"`
	LoRAEnabled     *bool            `json:"lora_enabled,omitempty"`
	OptimizerConfig *OptimizerConfig `json:"optimizer_config,omitempty"`
	InactiveTimeout *int             `json:"inactive_timeout,omitempty"` // seconds, 300 to 86,400
}

// ComputeConfig says what a resource is made of. NumGeneratorReplicas is never nil in an answer.
type ComputeConfig struct {
	GPUType              string `json:"gpu_type,omitempty"`
	NumGeneratorReplicas *int   `json:"num_generator_replicas,omitempty"`
}

// OptimizerConfig is one of the two; Adam has no members.
type OptimizerConfig struct {
	Adam *struct{}   `json:"adam,omitempty"`
	Muon *MuonConfig `json:"muon,omitempty"`
}

// MuonConfig sizes Muon's updates.
type MuonConfig struct {
	ScalingStrategy MuonScalingStrategy `json:"scaling_strategy,omitempty"`
}

// MuonScalingStrategy is an enum.
type MuonScalingStrategy string

// The strategies.
const (
	MuonMatchAdam MuonScalingStrategy = "MUON_SCALING_STRATEGY_MATCH_ADAM"
	MuonOriginal  MuonScalingStrategy = "MUON_SCALING_STRATEGY_ORIGINAL"
)

// ExtendExpiry is the body of POST PathResources/{id}/extend-expiry.
type ExtendExpiry struct {
	Seconds int `json:"seconds"` // from now, 60 to 86,400
}

// ResourceStatus is an enum.
type ResourceStatus string

// The states of a resource.
const (
	ResourcePending  ResourceStatus = "MODEL_RESOURCES_STATUS_PENDING"
	ResourceCreating ResourceStatus = "MODEL_RESOURCES_STATUS_CREATING"
	ResourceReady    ResourceStatus = "MODEL_RESOURCES_STATUS_READY"
	ResourceStopping ResourceStatus = "MODEL_RESOURCES_STATUS_STOPPING"
	ResourceStopped  ResourceStatus = "MODEL_RESOURCES_STATUS_STOPPED"
	ResourceError    ResourceStatus = "MODEL_RESOURCES_STATUS_ERROR"
)

// Name is the state without its prefix: READY.
func (s ResourceStatus) Name() string {
	return strings.TrimPrefix(string(s), "MODEL_RESOURCES_STATUS_")
}

// Final says that the resource holds no GPU any more, or is giving it back: it does not bill.
func (s ResourceStatus) Final() bool {
	return s == ResourceStopping || s == ResourceStopped || s == ResourceError
}

// Resource is a model resource.
type Resource struct {
	ID              string          `json:"id"`
	Status          ResourceStatus  `json:"status"`
	StatusDetails   StatusDetails   `json:"status_details"`
	BaseModel       string          `json:"base_model"`
	BaseWeightsRef  string          `json:"base_weights_ref,omitempty"`
	ComputeConfig   ComputeConfig   `json:"compute_config"`
	LoRAEnabled     bool            `json:"lora_enabled"`
	OptimizerConfig OptimizerConfig `json:"optimizer_config"`
	InactiveTimeout int             `json:"inactive_timeout"`     // seconds
	ExpiresAt       *time.Time      `json:"expires_at,omitempty"` // only while READY
	Error           *Fault          `json:"error,omitempty"`      // only in ERROR
	CreatedAt       time.Time       `json:"created_at"`
	UpdatedAt       time.Time       `json:"updated_at"`
	CreatedBy       string          `json:"created_by"`
}

// StatusDetails is always present; QueuePosition counts from 1 and is there only while queued.
type StatusDetails struct {
	QueuePosition int `json:"queue_position,omitempty"`
}
