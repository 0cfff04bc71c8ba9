package chat

// mode is a value of chat.train_on.
type mode struct {
	name     string
	headers  bool    // the role's token is trained with its message
	inserted float64 // weight of the system message that chat.system puts first
	prompt   float64 // weight of a prompt without roles
	picks    func(ms []Message, i int) bool
}

func modes() []mode {
	return []mode{
		{name: "all_assistant_messages", picks: byAssistant},
		{name: "last_assistant_message", picks: func(ms []Message, i int) bool {
			return byAssistant(ms, i) && !hasRole(ms[i+1:], "assistant")
		}},
		{name: "last_assistant_turn", picks: func(ms []Message, i int) bool {
			return byAssistant(ms, i) && !hasRole(ms[i+1:], "user")
		}},
		{name: "all_messages", inserted: 1, prompt: 1, picks: func([]Message, int) bool { return true }},
		{name: "all_tokens", headers: true, inserted: 1, prompt: 1, picks: func([]Message, int) bool { return true }},
		{name: "per_message", picks: func(ms []Message, i int) bool { return ms[i].Train != nil && *ms[i].Train }},
	}
}

// trained returns the weight of each message, [len(ms)].
func (m mode) trained(ms []Message) []float64 {
	out := make([]float64, len(ms))
	for i := range ms {
		switch {
		case ms[i].Train != nil && !*ms[i].Train, !m.picks(ms, i):
		case ms[i].Weight != nil:
			out[i] = *ms[i].Weight
		default:
			out[i] = 1
		}
	}
	return out
}

func byAssistant(ms []Message, i int) bool { return ms[i].Role == "assistant" && !ms[i].Given }

func hasRole(ms []Message, role string) bool {
	for _, m := range ms {
		if m.Role == role {
			return true
		}
	}
	return false
}
