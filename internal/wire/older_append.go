package wire

import "bytes"

// appendOlderSample is as appendSample, in the shape April2026. A tensor that the loss has no use for is left out, as it
// would be passed over; the object of a loss is written also where it is empty.
func appendOlderSample(dst []byte, s *Sample, t LossType) ([]byte, *tensor, int) {
	dst = append(dst, `{"model_input":{"chunks":[{"encoded_text":{"tokens":[`...)
	dst = appendInts(dst, s.Tokens)
	dst = append(dst, `]}}]},"loss_inputs":{`...)
	comma := false
	if s.Targets != nil {
		dst = append(dst, `"target_tokens":{"data":[`...)
		dst = appendInts(dst, s.Targets)
		dst = append(dst, `],"dtype":"`+dtypeInt64+`"}`...)
		comma = true
	}
	bad, at := (*tensor)(nil), 0
	if dst, comma, bad, at = appendOlderTensor(dst, s, "weights", comma); bad != nil {
		return dst, bad, at
	}
	if list := april[t]; len(list) > 0 {
		if comma {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), rowOf(t).name...), `_inputs":{`...)
		comma = false
		for _, name := range list {
			if dst, comma, bad, at = appendOlderTensor(dst, s, name, comma); bad != nil {
				return dst, bad, at
			}
		}
		dst = append(dst, '}')
	}
	dst = append(dst, '}')
	if s.Experts != nil {
		dst = appendExperts(append(dst, `,"routed_experts":`...), s.Experts)
	}
	return append(dst, '}'), nil, 0
}

// appendOlderTensor writes the tensor where the sample has it, behind a comma where one is due, and says whether one is due
// behind it.
func appendOlderTensor(dst []byte, s *Sample, name string, comma bool) ([]byte, bool, *tensor, int) {
	t := tensorNamed(name)
	list := *t.of(s)
	if list == nil {
		return dst, comma, nil, 0
	}
	if comma {
		dst = append(dst, ',')
	}
	dst = append(append(append(dst, '"'), name...), `":{"data":[`...)
	dst, at := appendFloats(dst, list)
	if at >= 0 {
		return dst, true, t, at
	}
	return append(dst, `],"dtype":"`+dtypeFloat32+`"}`...), true, nil, 0
}

// ScoresOlder says that body, as AppendForwardBackward wrote it, is in the shape April2026, only scores, and asks for what it
// scored. The page of that shape has neither of the two flags: a server may not know them.
func ScoresOlder(body []byte) bool {
	return bytes.Contains(body, []byte(`"loss_inputs":{`)) && bytes.Contains(body, []byte(`,"forward_only":true,"return_loss_fn_outputs":true`))
}
