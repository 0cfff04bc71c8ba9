package runner

import (
	"context"
	"slices"
	"strings"

	"trainer/internal/dataset"
	"trainer/internal/hub"
	"trainer/recipe"
)

// Unfetched is what the recipe names and this machine does not have, where nothing may be fetched. What can be checked without
// it was, and is sound.
type Unfetched struct {
	Missing []string // what, and what would bring it
}

func (u *Unfetched) Error() string { return strings.Join(u.Missing, "\n") }

// partial checks what is here where something is missing: rows of the sources that are, if they can be rendered. The error is an
// *Unfetched where nothing else is wrong.
func (in *Inputs) partial(ctx context.Context, h *hub.Hub, missing []string, train, held []recipe.Source) error {
	part := *in.Recipe
	part.Dataset.Train, part.Dataset.Validation, part.Dataset.ValidationSplit = train, held, nil
	if len(train) == 0 || in.Template == nil && !allTokens(part.Dataset) {
		return &Unfetched{missing}
	}
	if _, err := dataset.Open(ctx, &part, in.Template, h); err != nil {
		return err
	}
	return &Unfetched{missing}
}

// here splits sources into those that are on this machine and what the others lack.
func here(ctx context.Context, h *hub.Hub, sources []recipe.Source) (have []recipe.Source, missing []string) {
	for _, s := range sources {
		if away := h.Missing(ctx, dataset.Named(s)); away != nil {
			missing = append(missing, "the rows of "+away.Error())
			continue
		}
		have = append(have, s)
	}
	return have, missing
}

// openRows opens the dataset, or what of it is here.
func (in *Inputs) openRows(ctx context.Context, h *hub.Hub) (*dataset.Data, error) {
	if h.Offline != "" {
		d := in.Recipe.Dataset
		train, t := here(ctx, h, d.Train)
		held, v := here(ctx, h, d.Validation)
		if missing := slices.Concat(in.missing, t, v); len(missing) > 0 {
			return nil, in.partial(ctx, h, missing, train, held)
		}
	}
	if len(in.missing) > 0 {
		return nil, &Unfetched{in.missing}
	}
	return dataset.Open(ctx, in.Recipe, in.Template, h)
}

// commitsOf are the commits of the hub that the recipe's names were resolved to, by the name with its revision.
func (in *Inputs) commitsOf(h *hub.Hub) map[string]string {
	all, out := h.Commits(), map[string]string{}
	names := []string{in.tokenizerName(), in.Recipe.Chat.Template}
	for _, s := range slices.Concat(in.Recipe.Dataset.Train, in.Recipe.Dataset.Validation) {
		names = append(names, s.Path)
	}
	for _, name := range names {
		if ref := hub.Ref(name); ref != "" && all[ref] != "" {
			out[ref] = all[ref]
		}
	}
	return out
}
