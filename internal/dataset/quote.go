package dataset

// appendQuoted writes JSON text. What it is given is UTF-8, as it comes from rows that were checked.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		switch b := s[i]; {
		case b == '"' || b == '\\':
			dst = append(dst, '\\', b)
		case b < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', "0123456789abcdef"[b>>4], "0123456789abcdef"[b&15])
		default:
			dst = append(dst, b)
		}
	}
	return append(dst, '"')
}
