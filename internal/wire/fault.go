package wire

import (
	"strings"
	"time"
)

// ErrorBody is the envelope of every answer that is not 2xx.
type ErrorBody struct {
	Error ErrorDetail `json:"error"`
}

// ErrorDetail says what was refused. Type and Message are always there in an answer of the service; Code and Param are
// null where it has none.
type ErrorDetail struct {
	Type    string  `json:"type"`
	Message string  `json:"message"`
	Code    *string `json:"code"`
	Param   *string `json:"param"`
}

// Fault is why a resource or a session is in ERROR.
type Fault struct {
	Code       FaultCode `json:"code"`
	Message    string    `json:"message"`
	OccurredAt time.Time `json:"occurred_at"`
}

// FaultCode is a code of a resource's or a session's Fault.
type FaultCode string

// The codes.
const (
	CapacityWaitTimeout FaultCode = "MODEL_RESOURCES_ERROR_CODE_CAPACITY_WAIT_TIMEOUT"
	ProvisioningFailed  FaultCode = "MODEL_RESOURCES_ERROR_CODE_PROVISIONING_FAILED"
	ResourceUnavailable FaultCode = "MODEL_RESOURCES_ERROR_CODE_RESOURCE_UNAVAILABLE"

	SessionResourceUnavailable FaultCode = "TRAINING_SESSION_ERROR_CODE_RESOURCE_UNAVAILABLE"
	SessionResourceAtCapacity  FaultCode = "TRAINING_SESSION_ERROR_CODE_RESOURCE_AT_CAPACITY"
	SessionTimedOut            FaultCode = "TRAINING_SESSION_ERROR_CODE_TIMED_OUT"
	SessionFailed              FaultCode = "TRAINING_SESSION_ERROR_CODE_SESSION_FAILED"
)

// Name is the code without its prefix: PROVISIONING_FAILED.
func (c FaultCode) Name() string {
	s := strings.TrimPrefix(string(c), "MODEL_RESOURCES_ERROR_CODE_")
	return strings.TrimPrefix(s, "TRAINING_SESSION_ERROR_CODE_")
}
