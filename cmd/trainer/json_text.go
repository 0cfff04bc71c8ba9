package main

import "unicode/utf8"

// appendText appends text as JSON. What is no UTF-8, as half a character that ends a row of ids, becomes U+FFFD.
func appendText(dst []byte, text string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(text); {
		switch b := text[i]; {
		case b == '"' || b == '\\':
			dst = append(dst, '\\', b)
			i++
		case b == '\n':
			dst = append(dst, `\n`...)
			i++
		case b < 0x20 || b == 0x7f:
			dst = append(dst, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
			i++
		case b < utf8.RuneSelf:
			dst = append(dst, b)
			i++
		default:
			r, n := utf8.DecodeRuneInString(text[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
		}
	}
	return append(dst, '"')
}
