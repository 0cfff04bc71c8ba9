package main

import (
	"context"
	"fmt"

	"trainer/internal/chat"
	"trainer/internal/dataset"
	"trainer/internal/diag"
	"trainer/internal/report"
	"trainer/internal/sandbox"
	"trainer/runner"
)

// fitsStandIn refuses rows with tokens that the sandbox's stand-in for the base model has not, before any is sent. Rows are read
// again only where some may be: where the tokenizer has more ids, or there is none.
func fitsStandIn(ctx context.Context, in *runner.Inputs) error {
	if !in.StandIn {
		return nil
	}
	ids := sandbox.Vocabulary(in.Recipe.BaseModel)
	if in.Tokenizer != nil && in.Tokenizer.Size() <= ids {
		return nil
	}
	for _, s := range setsOf(in) {
		at, id, err := beyond(ctx, s.set, int32(ids))
		if err != nil {
			return err
		}
		if at < 0 {
			continue
		}
		needs := int(id) + 1
		if in.Tokenizer != nil {
			needs = in.Tokenizer.Size()
		}
		instead := "no stand-in has as many"
		if name := sandbox.WithVocabulary(needs); name != "" {
			instead = "to rehearse, give base_model a name whose stand-in has enough, such as " + name
		}
		var l diag.List
		l.Add(in.Recipe.At("base_model"), "base_model", "on the sandbox the stand-in for %s has a vocabulary of %s, and %s has the token %d; %s",
			in.Recipe.BaseModel, report.Count(ids), s.set.At(at), id, instead)
		return l.Err()
	}
	return nil
}

// beyond is the first row with an id of at least limit, and the id; a negative row where there is none.
func beyond(ctx context.Context, set *dataset.Set, limit int32) (row int, id int32, err error) {
	row = -1
	n := 0
	err = eachRow(ctx, set, set.Len(), func(_ int, exs []chat.Example) (int32, error) {
		for _, ex := range exs {
			for _, id := range ex.IDs {
				if id >= limit {
					return id, nil
				}
			}
		}
		return -1, nil
	}, func(found int32) error {
		if found >= 0 && row < 0 {
			row, id = n, found
		}
		n++
		return nil
	})
	if err != nil {
		return -1, 0, fmt.Errorf("looking for tokens that the stand-in has not: %w", err)
	}
	return row, id, nil
}
