package recipe

import (
	"regexp"
	"strings"
)

// secretForms are shapes that only keys and tokens have; what a stranger's file says is never echoed where one matches.
var secretForms = []struct {
	name string
	form *regexp.Regexp
}{
	{"a private key", regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY`)},
	{"an API key", regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{20,}`)},
	{"a Together API key", regexp.MustCompile(`\btgp_v\d_[A-Za-z0-9_-]{16,}`)},
	{"a Hugging Face token", regexp.MustCompile(`\bhf_[A-Za-z0-9]{20,}`)},
	{"a GitHub token", regexp.MustCompile(`\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})`)},
	{"an AWS access key", regexp.MustCompile(`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`)},
	{"a Google API key", regexp.MustCompile(`\bAIza[0-9A-Za-z_-]{35}`)},
	{"a Slack token", regexp.MustCompile(`\bxox[abprs]-[A-Za-z0-9-]{10,}`)},
	{"a W&B key", regexp.MustCompile(`\bwandb_v\d_[A-Za-z0-9_]{16,}`)},
	{"a bearer token", regexp.MustCompile(`(?i)\bbearer\s+[A-Za-z0-9._~+/=-]{12,}`)},
	{"a JSON web token", regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+`)},
	{"a password in an address", regexp.MustCompile(`[a-z][a-z0-9+.-]*://[^/\s:@]*:[^/\s@]+@`)},
}

// secret names what text looks like, or is "".
func secret(text string) string {
	if len(text) < 8 {
		return ""
	}
	for _, s := range secretForms {
		if s.form.MatchString(text) {
			return s.name
		}
	}
	return ""
}

// secretWords end the names of keys that hold secrets. They are whole words: max_tokens, stop_token and use_cls_token
// hold none.
var secretWords = regexp.MustCompile(`(?i)(?:^|[_-])(?:api_?key|access_?key|secret_?key|private_?key|secret|password|passwd|authorization|credentials?|(?:auth|access|api|hf|bearer|refresh|session)_?token)$|^(?:token|cookie|x-api-key)$`)

func secretName(key string) bool {
	return secretWords.MatchString(strings.ToLower(key[strings.LastIndex(key, ".")+1:]))
}
