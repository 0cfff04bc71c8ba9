package chat

import (
	"fmt"
	"strings"
	"testing"

	"trainer/recipe"
)

// chatML is a template of our own, in the layout of the byte vocabulary's control tokens.
const plainTemplate = `{{- bos_token }}{% for m in messages %}{{ '<|' + m.role + '|>' + m.content + eos_token }}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}`

func BenchmarkEncode(b *testing.B) {
	for _, turns := range []int{1, 4, 20, 100} {
		b.Run(fmt.Sprintf("%d turns", turns), func(b *testing.B) {
			tpl := template(b, recipe.Chat{Template: plainTemplate})
			var c Conversation
			n := 0
			for range turns {
				c.Messages = append(c.Messages, Message{Role: "user", Content: strings.Repeat("what is it? ", 20)}, Message{Role: "assistant", Content: strings.Repeat("it is that. ", 40)})
				n += 12 * 60
			}
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tpl.Encode(c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
