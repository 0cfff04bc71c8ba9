package dataset

import (
	"trainer/internal/hub"
	"trainer/recipe"
)

// Named is a source of the recipe as the hub is asked for it.
func Named(s recipe.Source) hub.Source {
	out := hub.Source{Name: s.Path, Dir: s.Dir, Split: s.Split}
	if s.Subset != nil {
		out.Subset = *s.Subset
	}
	if s.SHA256 != nil {
		out.SHA256 = *s.SHA256
	}
	return out
}
