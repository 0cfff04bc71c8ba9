package recipe

import "strings"

// IsFile says whether the template is a file: a name that ends in .jinja, .jinja2 or .j2. Dir of chat.template is where it starts.
func (c Chat) IsFile() bool { return isTemplateFile(c.Template) }

func isTemplateFile(value string) bool {
	if strings.ContainsAny(value, "\n{") || strings.HasPrefix(value, "hf://") {
		return false
	}
	return strings.HasSuffix(value, ".jinja") || strings.HasSuffix(value, ".jinja2") || strings.HasSuffix(value, ".j2")
}

// Values are the values that Hash covers, by their dotted keys, each as YAML on one line.
func (r *Recipe) Values() map[string]string {
	out := map[string]string{}
	for _, l := range r.lines() {
		if l.key == "eval.sampling_params" { // null: nothing is sampled, as if there were no such key
			continue
		}
		if !l.head && !r.isBeside(l.k.Path) && !r.isSchemaFile(l) {
			out[l.key] = l.text
		}
	}
	return out
}
