package main

import (
	"fmt"
	"strings"

	"trainer/internal/grader"
	"trainer/recipe"
)

// rewardsPage is the page docs/rewards.md.
func rewardsPage(d docs) []byte {
	var b strings.Builder
	b.WriteString(rewardsOpening)
	params := rewardParams()
	for _, k := range grader.Kinds() {
		fmt.Fprintf(&b, "## %s\n\n%s\n\n```yaml\n%s```\n\n", k.Name, about(d, k), rewardExamples[k.Name])
		for _, v := range params.Variants {
			if v.Name == k.Name {
				page{&b, d, map[string]string{}}.table(v.Keys)
			}
		}
	}
	b.WriteString(rewardsClosing)
	return []byte(b.String())
}

// about is the comment of a kind's struct, without the struct's name.
func about(d docs, k grader.Kind) string {
	name := strings.TrimPrefix(fmt.Sprintf("%T", k.New()), "*")
	text := strings.TrimPrefix(d[name], strings.TrimPrefix(name, "grader.")+" ")
	return strings.ToUpper(text[:1]) + text[1:]
}

// rewardParams is the key that the parameters of rewards stand at.
func rewardParams() *recipe.Key {
	for _, k := range recipe.Keys().Keys {
		if k.Name != "reward" {
			continue
		}
		for _, c := range k.Elem.Keys {
			if c.Name == "params" {
				return c
			}
		}
	}
	panic("the recipe has no reward.N.params")
}

// rewardExamples is an entry of reward of each kind; those with tests are held to them.
var rewardExamples = map[string]string{
	"exact": `- type: exact
  params: {extract: last_line, ignore_case: true}
  tests:
    - {completion: "Let me think.\nparis", target: Paris, reward: 1}
    - {completion: "Paris, France", target: Paris, reward: 0}
`,
	"contains": `- type: contains
  params: {values: [because, therefore], mode: fraction, whole_word: true}
  tests:
    - {completion: It rains because of the clouds., reward: 0.5}
`,
	"numeric": `- type: numeric
  params: {rel_tolerance: 0.01}
  tests:
    - {completion: "So it is about 3.15.", target: "3.14159", reward: 1}
    - {completion: "$1,234", target: "1234", reward: 1}
    - {completion: many, target: "3", reward: 0}
`,
	"regex": `- type: regex
  params: {pattern: 'Answer: (\w+)', group: 1}
  tests:
    - {completion: "Answer: Rome\nAnswer: Paris", target: Paris, reward: 1}
`,
	"json_schema": `- type: json_schema
  params:
    schema: {type: object, properties: {age: {type: integer, minimum: 0}}, required: [age], additionalProperties: false}
  tests:
    - {completion: '{"age": 3}', reward: 1}
    - {completion: '{"age": 3, "age": 4}', reward: 0}
`,
	"math_equal": `- type: math_equal
  params: {extract: last_boxed}
  tests:
    - {completion: 'So \boxed{\frac{1}{2}}', target: "0.5", reward: 1}
    - {completion: '\boxed{x > 3}', target: '(3, \infty)', reward: 1}
    - {completion: '\boxed{\{1, 2\}}', target: '(1, 2)', reward: 0}
    - {completion: '<think>\boxed{4}', target: "4", reward: 0}
    - {completion: '\boxed{4}', reward: null}
`,
	"multiple_choice": `- type: multiple_choice
  params: {choices: ABCDE}
  tests:
    - {completion: The answer is (C)., target: C, reward: 1}
    - {completion: The answer is B or C., target: C, reward: 0}
`,
	"length": `- type: length
  weight: 0.2
  params: {unit: words, max: 2, ramp: 4}
  tests:
    - {completion: one two three, reward: 0.75}
`,
	"repetition": `- type: repetition
  weight: 0.5
  params: {unit: words, ngram: 2}
  tests:
    - {completion: a b a b a b, reward: -0.6}
`,
	"format": `- type: format
  gate: {min: 1, else: 0}
  params: {answer_start: <answer>, answer_end: </answer>}
  tests:
    - {completion: "<think>2 and 2</think><answer>4</answer>", reward: 1}
    - {completion: "2 and 2</think><answer>4</answer>", open: true, reward: 1}
    - {completion: "<think></think><answer>4</answer>", reward: 0}
`,
	"judge": `- type: judge
  on_unscored: skip
  params: {model: some/model, samples: 3}
`,
	"command": `- type: command
  params: {command: [python3, grade.py], env: [GRADER_TOKEN], workers: 8, params: {language: go}}
`,
	"http": `- type: http
  params: {url: "https://grader.example/score", headers: {Authorization: "Bearer ${env:GRADER_TOKEN}"}}
`,
}

const rewardsOpening = `# Rewards

<!-- Made by go generate from the structs of internal/grader and internal/gen/rewards.go; edit those instead. -->

` + "`reward`" + ` lists what a completion is scored by. The reward is the sum of weight × score, in the order of the list. Beside ` + "`type`, `weight` and `params`" + `
an entry has:

- ` + "`clip: [lo, hi]`" + ` bounds the score before its weight. ` + "`gate: {min: 0.5, else: 0.0}`" + `: a clipped score below min makes the whole reward ` + "`else`" + `; the first gate
  that fails decides, and rewards behind it that ask outside are not asked.
- ` + "`on_unscored`" + `: a score can be missing: the row has no target, a program died, a judge gave none. It is never taken for 0. ` + "`drop`" + ` leaves the
  completion without a reward, not trained and not in its group's mean; ` + "`skip`" + ` leaves this entry out. A wrong, empty or unreadable *answer* is 0.
- ` + "`tests`" + ` are completions whose score is known. They run on ` + "`validate`" + ` and before every run; one that fails is an error at its line. ` + "`reward: null`" + `
  expects no score, ` + "`open: true`" + ` is a prompt that ends inside the reasoning. Clip, gate and weight are left out.

What is graded is the completion as text, without its stop token. By default that is what follows the reasoning block; a block that never
ends leaves nothing to grade, which is 0. The prompt is never graded. No score depends on a clock: limits are counts of characters, depth,
bits and steps, so a completion has one reward on every machine.

What asks outside needs a person's leave: ` + "`--allow-exec`" + ` for ` + "`command`, `--allow-host HOST` for `http` and `judge`" + `. Without it a run is refused, and
` + "`validate`" + ` names what it left unchecked. The API key never reaches them.

`

const rewardsClosing = `## The protocol of command and http

A program gets one JSON object a line on stdin and answers with one a line on stdout; what it prints to stderr goes to the log. First

` + "```" + `
→ {"v":1,"type":"hello","kind":"reward","params":{"language":"go"},"run":"…"}
← {"v":1,"type":"ready","name":"unit-tests","max_in_flight":4}
` + "```" + `

and then a request a completion, up to ` + "`max_in_flight`" + ` (1 where it is left out) at a time, answered in any order:

` + "```" + `
→ {"v":1,"id":1,"type":"score","attempt":0,"sample":"b0.p2.m5","prompt":[{"role":"user","content":"…"}],"completion":"…","answer":"…","target":"…","row":{…},"tokens":130,"stop_reason":"stop"}
← {"v":1,"id":1,"score":0.75,"info":{"passed":3,"of":4}}
` + "```" + `

` + "`completion`" + ` is the text as sampled, ` + "`answer`" + ` what follows the reasoning. ` + "`score: null`" + ` with a ` + "`reason`" + ` is no score, and so is anything that is not a finite number.
` + "`error`" + ` is a text instead of a score; with ` + "`retry: true`" + ` it is asked again, with ` + "`fatal: true`" + ` the run stops. The same sample can come twice, with a higher
` + "`attempt`" + `. The program leaves at the end of its stdin.

An address gets the same object in a POST, with ` + "`params` and `run`" + ` in it and without a hello; the body of a 200 is the reply, where ` + "`id`" + ` may be left out. Redirects
are not followed. Status 408, 425, 429, 5xx and broken bodies are tried again, any other status stops the run.

A program that does not answer in time, dies, or prints something else to stdout is killed with its children and started again; its requests
are sent to the new one, up to ` + "`retries`" + ` times. Five deaths without a reply in between stop the run, with what it printed. One is started before anything is paid:
a program that does not get ready is an error of the recipe. The first attempt of each kind that brings no score, a timeout say, is told in a line; the
metrics count them all, ` + "`reward/command/unscored/timeout`" + `, with ` + "`other`" + ` for what a grader says in its own words.
`
