package wire

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestInt64IsAStringOut(t *testing.T) {
	type both struct {
		A Int64
		R Integer
		P *Int64 `json:",omitempty"`
	}
	got, err := json.Marshal(both{A: -9223372036854775808, R: 9223372036854775807, P: new(Int64(0))})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"A":"-9223372036854775808","R":9223372036854775807,"P":"0"}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for body, want := range map[string]both{
		`{"A":"12","R":"-12","P":"7"}`: {12, -12, new(Int64(7))},
		`{"A":12,"R":-12,"P":7}`:       {12, -12, new(Int64(7))},
		`{"A":null,"R":null,"P":null}`: {},
	} {
		var v both
		if err := json.Unmarshal([]byte(body), &v); err != nil || !reflect.DeepEqual(v, want) {
			t.Errorf("%s: got %+v, %v, want %+v", body, v, err, want)
		}
	}
	for _, bad := range []string{`1.5`, `1e3`, `"1.0"`, `""`, `"+1"`, `" 1"`, `"9223372036854775808"`, `true`, `{}`, `"null"`, `"0x10"`} {
		var v Int64
		if err := json.Unmarshal([]byte(bad), &v); err == nil {
			t.Errorf("%s was read as %d", bad, v)
		}
	}
}

func TestNamesHaveNoPrefix(t *testing.T) {
	for got, want := range map[string]string{
		ResourceReady.Name(): "READY", SessionExpired.Name(): "EXPIRED", CodeNonFiniteLoss.Name(): "NON_FINITE_LOSS",
		ProvisioningFailed.Name(): "PROVISIONING_FAILED", SessionTimedOut.Name(): "TIMED_OUT", FaultCode("NEW").Name(): "NEW",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if ResourceReady.Final() || !ResourceStopping.Final() || SessionStopping.Final() || !SessionExpired.Final() || OperationRunning.Final() {
		t.Error("the final states are wrong")
	}
}
