package recipe

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"trainer/internal/grader"
)

// beside are the keys that Hash leaves out, with the reason. A key stands for everything below it; a last part of one
// source stands for that of each.
var beside = map[string]string{
	"version":                     "one schema, one meaning",
	"name":                        "names the folder",
	"description":                 "is read by people",
	"extends":                     "is merged: the values count, not where they stood",
	"model_resources_id":          "which resource computes, not what",
	"inactive_timeout":            "when an idle resource stops",
	"keep_resources":              "what happens after the run",
	"tokenizer":                   "its files are hashed apart",
	"chat.template":               "its text is hashed apart, by the rows that it renders",
	"chat.date":                   "is hashed with the template that writes it",
	"dataset.train.N.path":        "its bytes are hashed apart",
	"dataset.train.N.subset":      "its bytes are hashed apart",
	"dataset.train.N.split":       "its bytes are hashed apart",
	"dataset.train.N.sha256":      "its bytes are hashed apart",
	"dataset.validation.N.path":   "its bytes are hashed apart",
	"dataset.validation.N.subset": "its bytes are hashed apart",
	"dataset.validation.N.split":  "its bytes are hashed apart",
	"dataset.validation.N.sha256": "its bytes are hashed apart",
	"train.lookahead":             "when steps are sent, not which",
	"eval":                        "scores weights without changing them; counted where early_stop ends the run by it",
	"checkpoint":                  "saves weights without changing them",
	"logging":                     "tells of the run",
	"limits":                      "end a life of the run, which resumes as it was",
	envDir:                        "where a program stands, not which",
	"test":                        "is of trainer test",
	"reward.N.tests":              "are held before the run",
	rewardDir:                     "where a program stands, not which",
	lossDir:                       "the files of the program are hashed apart",
	"loss.params.timeout":         "how long a program may take",
	"loss.params.start_timeout":   "how long a program may take",
	"loss.params.retries":         "how often a program is asked, not what",
}

// Hash is the SHA-256, in hexadecimal, of every value that decides what is trained, but for the bytes of the dataset, the
// tokenizer and the template, which are hashed where they are read. It does not depend on the order of keys, on comments,
// on how parents are laid out, on the names of files, or on whether a default was written out.
func (r *Recipe) Hash() string {
	var values []string
	for key, text := range r.Values() {
		values = append(values, key+": "+text)
	}
	slices.Sort(values)
	sum := sha256.Sum256([]byte(strings.Join(values, "\n")))
	return hex.EncodeToString(sum[:])
}

// isSchemaFile says whether a line is the path of a reward's schema, whose bytes are hashed apart.
func (r *Recipe) isSchemaFile(l line) bool {
	if l.k.Path != schemaPath {
		return false
	}
	i, err := strconv.Atoi(strings.Split(l.key, ".")[1])
	if err != nil || i >= len(r.Reward) {
		return false
	}
	g, ok := r.Reward[i].Params.(*grader.JSONSchema)
	return ok && g.File("") != ""
}

func (r *Recipe) isBeside(path string) bool {
	for at := path; at != ""; at = above(at) {
		if _, ok := beside[at]; ok {
			return !(at == "eval" && r.Eval.EarlyStop != nil)
		}
	}
	return false
}

// Change is a key whose values differ between two recipes, as YAML; a value is empty where the recipe has no such key.
type Change struct{ Key, A, B string }

// Diff lists the values that differ, in the order of the schema, paths made absolute. Where values stood, and whether a
// default was written out, is no difference.
func Diff(a, b *Recipe) []Change {
	was, is := values(a), values(b)
	var out []Change
	for _, key := range mergedOrder(a.lines(), b.lines()) {
		if was[key] != is[key] && key != "extends" {
			out = append(out, Change{key, was[key], is[key]})
		}
	}
	return out
}

func values(r *Recipe) map[string]string {
	out := map[string]string{}
	for _, l := range r.lines() {
		if !l.head {
			out[l.key] = l.text
		}
	}
	return out
}

// mergedOrder is the keys of both in the order of a, those that b alone has behind the one that they follow in b.
func mergedOrder(a, b []line) []string {
	has := map[string]bool{}
	for _, l := range a {
		has[l.key] = true
	}
	behind := map[string][]string{}
	last := ""
	for _, l := range b {
		if has[l.key] {
			last = l.key
		} else {
			behind[last] = append(behind[last], l.key)
		}
	}
	out := slices.Clone(behind[""])
	for _, l := range a {
		out = append(append(out, l.key), behind[l.key]...)
	}
	return out
}
