package diag

import (
	"errors"
	"testing"
)

func TestListInFileOrder(t *testing.T) {
	var l List
	l.Add(Pos{"r.yaml", 9, 1}, "seed", "late")
	l.Add(Pos{"rows.jsonl", 2, 0}, "", "a row")
	l.Add(Pos{"r.yaml", 3, 9}, "loss.type", "%q is not a loss", "gpro")
	l.Add(Pos{"r.yaml", 3, 9}, "loss.type", "%q is not a loss", "gpro")
	l.Add(Pos{File: "--set a.b"}, "a.b", "unknown key")
	want := `r.yaml:3:9: loss.type: "gpro" is not a loss
r.yaml:9:1: seed: late
rows.jsonl:2: a row
--set a.b: a.b: unknown key`
	if got := l.Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	var target List
	if !errors.As(l.Err(), &target) {
		t.Error("Err does not hold a List")
	}
	if (List{}).Err() != nil {
		t.Error("an empty list is an error")
	}
}

func TestNearest(t *testing.T) {
	names := []string{"grpo", "ppo", "learning_rate", "lora_config", "split"}
	for got, want := range map[string]string{
		"gpro": "grpo", "learnig_rate": "learning_rate", "Learning-Rate": "learning_rate", "lora": "",
		"splt": "split", "zebra": "", "": "", "x": "", "lr": "", "pppo": "ppo",
	} {
		if n := Nearest(got, names); n != want {
			t.Errorf("Nearest(%q) = %q, want %q", got, n, want)
		}
	}
}
