package report

import (
	"math"
	"testing"
	"time"
)

func TestNumbersAsPeopleReadThem(t *testing.T) {
	for got, want := range map[string]string{
		Loss(1.23456): "1.2346", Loss(0): "0.0000", Loss(-0.5): "-0.5000", Loss(-7e-9): "0.0000", Loss(-0.00004999): "0.0000", Loss(-0.00006): "-0.0001", Loss(12345678): "1.2346e+07", Loss(math.Inf(1)): "+Inf",
		Rate(9.8e-5): "9.80e-05", Rate(0): "0", Rate(0.0001234): "1.23e-04",
		Count(0): "0", Count(999): "999", Count(1000): "1,000", Count(-1234567): "-1,234,567", Count(int64(math.MinInt64)): "-9,223,372,036,854,775,808",
		Short(0): "0", Short(0.25): "0.2", Short(8.26): "8.3", Short(9.96): "10", Short(999.4): "999", Short(999.6): "1.0k", Short(12345): "12.3k",
		Short(999960): "1.0M", Short(4.2e6): "4.2M", Short(3.5e9): "3.5G", Short(0.001234): "0.00123",
		USD(0): "$0.00", USD(1234.5): "$1,234.50", USD(0.005): "$0.01", USD(-3): "-$3.00", USD(math.NaN()): "$NaN", USD(0.999): "$1.00",
		percent(1, 3): "33.3 %", percent(0, 0): "-",
		score("eval/tokens", 512): "512", score("eval/loss", 2): "2.0000", score("eval/pass@1", 0.25): "0.2500", score("x", math.Inf(-1)): "-Inf",
		plural(1, "epoch", "epochs"): "1 epoch", plural(2.5, "epoch", "epochs"): "2.5 epochs", plural(1200, "row", "rows"): "1,200 rows",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestDurationsAsPeopleSayThem(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Hour: "<1s", 0: "<1s", 999 * time.Millisecond: "<1s", time.Second: "1s", 59400 * time.Millisecond: "59s", 59600 * time.Millisecond: "1m",
		80 * time.Second: "1m20s", 16 * time.Minute: "16m", 3599600 * time.Millisecond: "1h", 2*time.Hour + 5*time.Minute + 40*time.Second: "2h05m",
		76 * time.Hour: "3d04h", 24 * time.Hour: "1d",
	} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%v) = %q, want %q", d, got, want)
		}
	}
	for v, want := range map[float64]time.Duration{1.5: 1500 * time.Millisecond, 0: 0, -1: 0, math.Inf(1): 100 * 365 * 24 * time.Hour} {
		if got := seconds(v); got != want {
			t.Errorf("seconds(%v) = %v, want %v", v, got, want)
		}
	}
	if got := seconds(math.NaN()); got != 0 {
		t.Errorf("seconds(NaN) = %v, want 0", got)
	}
}

func TestForeignTextCannotSteerATerminal(t *testing.T) {
	for in, want := range map[string]string{
		"plain, ünïcode, 日本語, 👩\u200d💻": "plain, ünïcode, 日本語, 👩\u200d💻",
		"a\nb\tc\r\nd\u2028e\u00a0f":    "a b c  d e f",
		"\x1b[2J\x07\x00\u009b":         "?[2J???",
		"\u202eabc\u2066":               "?abc?",
		"\xff\xfe":                      "?",
		"\ufffe":                        "?",
	} {
		if got := printable(in); got != want {
			t.Errorf("printable(%q) = %q, want %q", in, got, want)
		}
	}
	if got, want := printableText("a:\r\n\tb\u3000\x1b\u202e\n"), "a:\n\tb\u3000??\n"; got != want {
		t.Errorf("printableText = %q, want %q", got, want)
	}
}
