package jinja

import "math"

// JSON is json.dumps(v, ensure_ascii=False) of a value that Decode makes, which is how templates write JSON.
func JSON(v Value) string {
	w := &jsonWriter{x: &exec{steps: math.MaxInt, memory: math.MaxInt}, comma: ", ", colon: ": "}
	w.value(v, 0)
	return w.b.String()
}
