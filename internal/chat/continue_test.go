package chat

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"trainer/internal/chat/jinja"
	"trainer/recipe"
)

// TestAConversationIsContinuedAsTheTemplateWritesIt: what follows a turn is the end of the whole conversation's rendering, and
// what stands before it there is the turn, to its end token. Where history is written otherwise, it is refused.
func TestAConversationIsContinuedAsTheTemplateWritesIt(t *testing.T) {
	rewrites := map[string]string{
		// reasoning is left out once a user has spoken again
		"qwen3": "user", "qwen3_5": "user", "gptoss": "user", "deepseek_r1": "user", "glm4": "user", "minimax_m2": "user",
	}
	for _, f := range families() {
		t.Run(f.name, func(t *testing.T) {
			tpl := f.open(t)
			shapes := map[string]string{
				"user": `{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello"},{"role":"user","content":"Again"}]}`,
			}
			if tpl.own.reads("tool_calls") && tpl.own.reads("tools") {
				shapes["tool"] = `{` + weatherTool + `,"messages":[{"role":"user","content":"Paris?"},{"role":"assistant","content":"","tool_calls":[` + weatherCall("call00001", "Paris") + `]},{"role":"tool","tool_call_id":"call00001","name":"weather","content":"sunny"}]}`
			}
			for role, text := range shapes {
				c := parse(t, text)
				if err := tpl.Rewrites(Conversation{Messages: c.Messages[:1:1]}, role); role == "user" || tpl.own.reads("<tool_call>") {
					if (err != nil) != (rewrites[f.name] == role) {
						t.Errorf("%s: rewrites: %v", role, err)
					}
				} else if f.name == "gptoss" && err == nil { // wants a call, and its own are not read
					t.Errorf("%s: is taken without a call", role)
				}
				reply := c.Messages[2:]
				whole, err := tpl.Prompt(c)
				if err != nil {
					t.Fatal(err)
				}
				c.Messages = c.Messages[:2:2]
				got, err := tpl.Continue(c, reply, -1)
				var fault *Fault
				if errors.As(err, &fault) && strings.Contains(fault.Msg, "writes the turn otherwise") {
					if rewrites[f.name] != role {
						t.Errorf("%s: %v", role, err)
					}
					continue
				}
				if err != nil || rewrites[f.name] == role {
					t.Errorf("%s: %v, want rewriting: %v", role, err, rewrites[f.name])
					continue
				}
				n := len(whole) - len(got)
				if n < 0 || !slices.Equal(got, whole[n:]) {
					t.Errorf("%s: %q, want an end of %q", role, tpl.tok.Decode(got), tpl.tok.Decode(whole))
					continue
				}
				before := strings.TrimSpace(tpl.tok.Decode(whole[:n]))
				if role == "user" && !strings.HasSuffix(before, "Hello") {
					t.Errorf("user: behind %q, want behind the answer", before)
				}
				if sampled, err := tpl.Continue(c, reply, got[0]); err != nil || !slices.Equal(sampled, got[1:]) {
					t.Errorf("%s: behind its own end %q, %v", role, tpl.tok.Decode(sampled), err)
				}
			}
		})
	}
}

func TestTheByteLayoutIsContinued(t *testing.T) {
	tpl := template(t, recipe.Chat{})
	c := Conversation{Messages: []Message{{Role: "user", Content: "2+3"}}}
	prompt, err := tpl.Prompt(c)
	if err != nil {
		t.Fatal(err)
	}
	c.Messages = append(c.Messages, Message{Role: "assistant", Content: "calc"})
	reply := []Message{{Role: "tool", Content: "5"}}
	whole, err := tpl.Prompt(Conversation{Messages: append(slices.Clone(c.Messages), reply...)})
	if err != nil {
		t.Fatal(err)
	}
	turn, _ := tpl.tok.Encode("calc")
	end := tpl.layout.end
	for last, sampled := range map[int32][]int32{end: append(slices.Clone(turn), end), -1: turn} {
		rest, err := tpl.Continue(c, reply, last)
		if got := slices.Concat(prompt, sampled, rest); err != nil || !slices.Equal(got, whole) {
			t.Errorf("ended by %d: %v, %v; want %v", last, got, err, whole)
		}
	}
	if _, err := tpl.Continue(c, []Message{{Role: "observer", Content: "x"}}, -1); err == nil || !strings.Contains(err.Error(), "messages.2.role") {
		t.Error(err)
	}
}

func TestAnswersAreTakenApart(t *testing.T) {
	const call = "<tool_call>\n"
	for _, c := range []struct {
		family, text, content, reasoning, arguments, unread string
	}{
		{"qwen2_5", "It is\n" + call + `{"name":"weather","arguments":{"city":"Paris"}}` + "\n</tool_call>", "It is", "", `{"city":"Paris"}`, ""},
		{"qwen2_5", call + `{"name":"weather","arguments":{"city"`, call + `{"name":"weather","arguments":{"city"`, "", "", "without its end"},
		{"qwen2_5", call + `weather</tool_call>`, call + `weather</tool_call>`, "", "", "call 0: not JSON"},
		{"qwen2_5", call + `{"name":"weather","arguments":[1]}</tool_call>`, call + `{"name":"weather","arguments":[1]}</tool_call>`, "", "", "not an object"},
		{"qwen2_5", "plain", "plain", "", "", ""},
		{"qwen3", "<think>\nhm\n</think>\n\n" + call + `{"name":"weather"}</tool_call>`, "", "hm", "{}", ""},
		{"qwen3_5", "hm\n</think>\n\n" + call + "<function=weather>\n<parameter=city>\n12\n</parameter>\n</function>\n</tool_call>", "", "hm", `{"city":"12"}`, ""},
		{"qwen3_5", call + "<function=weather>", call + "<function=weather>", "", "", "without its end"},
		{"glm4", "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n</tool_call>", "", "", `{"city":"Paris"}`, ""},
		{"llama3_1", `{"name":"weather"}`, "", "", "{}", ""},
		{"llama3_1", `{"name":"weather","parameters":`, `{"name":"weather","parameters":`, "", "", "not JSON"},
		{"llama3_1", `<|python_tag|>weather.call(city="Paris")`, `<|python_tag|>weather.call(city="Paris")`, "", "", "not JSON"},
		{"llama3_1", `{"city":"Paris"}`, `{"city":"Paris"}`, "", "", ""},
		{"gptoss", `<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{"city":"Paris"}`, "", "hm", `{"city":"Paris"}`, ""},
		{"gptoss", `<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Rain.`, "Rain.", "hm", "", ""},
		{"gptoss", ` to=functions.weather<|channel|>commentary json<|message|>Paris`, ` to=functions.weather<|channel|>commentary json<|message|>Paris`, "", "", "call 0: its arguments are not an object"},
		{"deepseek_v3", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{}", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{}", "", "", "without its end"},
		{"deepseek_v3", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{\"city\":\"Paris\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "", "", `{"city":"Paris"}`, ""},
		{"mistral_nemo", `[TOOL_CALLS][{"name": "weather", "arguments": {"city":"Paris"}, "id": "abcdefghi"}]`, "", "", `{"city":"Paris"}`, ""},
		{"mistral_nemo", `[TOOL_CALLS]weather[ARGS]{"city":"Paris"}`, "", "", `{"city":"Paris"}`, ""},
		{"mistral_nemo", `[TOOL_CALLS][{"name"`, `[TOOL_CALLS][{"name"`, "", "", "without a list"},
		{"kimi_k2", `Well.<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>{"city":"Paris"}<|tool_call_end|><|tool_calls_section_end|>`, "Well.", "", `{"city":"Paris"}`, ""},
		{"minimax_m2", "hm</think>\n<minimax:tool_call>\n<invoke name=\"weather\">\n<parameter name=\"city\">Paris</parameter>\n</invoke>\n</minimax:tool_call>", "", "hm", `{"city":"Paris"}`, ""},
		{"gemma3", "plain", "plain", "", "", "are not read"},
	} {
		for _, f := range families() {
			if f.name != c.family {
				continue
			}
			tpl := f.open(t)
			tools := parse(t, `{`+weatherTool+`,"messages":[]}`).Tools
			a := tpl.Answer(c.text, tools)
			arguments := ""
			if len(a.Calls) > 0 {
				arguments = a.Calls[0].Arguments
				if a.Calls[0].Name != "weather" {
					t.Errorf("%s: %q: a call of %s", c.family, c.text, a.Calls[0].Name)
				}
			}
			if a.Content != c.content || a.Reasoning != c.reasoning || arguments != c.arguments || (c.unread == "") != (a.Unread == "") || !strings.Contains(a.Unread, c.unread) {
				t.Errorf("%s: %q is %+v", c.family, c.text, a)
			}
		}
	}
}

// TestCallsAreReadAsTheyAreWritten: what a published template writes of a call, as its turn is trained, is read again as that call.
func TestCallsAreReadAsTheyAreWritten(t *testing.T) {
	want := jinja.NewDict("city", "Paris", "days", int64(3))
	read := 0
	for _, f := range families() {
		tpl := f.open(t)
		c := parse(t, `{`+weatherTool+`,"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"","tool_calls":[{"id":"abcdefghi","type":"function","function":{"name":"weather","arguments":{"city":"Paris","days":3}}}]}]}`)
		exs, err := tpl.Encode(c)
		if err != nil { // MiniMax's turns begin with reasoning
			c.Messages[1].Fields.Set("reasoning_content", "hm")
			exs, err = tpl.Encode(c)
		}
		if err != nil {
			t.Logf("%s: no call can be written: %v", f.name, err)
			continue
		}
		ex := exs[len(exs)-1]
		from := slices.IndexFunc(ex.Weights, func(w float64) bool { return w > 0 })
		to := len(ex.IDs)
		for ex.Weights[to-1] == 0 || tpl.tok.Decode(ex.IDs[to-1:to]) == f.eos {
			to--
		}
		text := tpl.tok.Decode(ex.IDs[from:to])
		a := tpl.Answer(text, c.Tools)
		if len(a.Calls) != 1 || a.Calls[0].Name != "weather" {
			t.Errorf("%s: %q is %+v", f.name, text, a)
			continue
		}
		got, err := jinja.Decode([]byte(a.Calls[0].Arguments))
		if err != nil || jinja.JSON(got) != jinja.JSON(want) && jinja.JSON(got) != `{"city": "Paris", "days": "3"}` { // where arguments are text and no tool defines them
			t.Errorf("%s: %q has the arguments %s", f.name, text, a.Calls[0].Arguments)
		}
		read++
	}
	if read < len(families())-3 { // DeepSeek's two have no place for tools, and Gemma's none for calls
		t.Errorf("calls of %d families are read", read)
	}
}
