package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"trainer/internal/diag"
)

// starter holds a recipe and a tiny dataset for each kind of training.
//
//go:embed starter
var starter embed.FS

var starters = map[string][]string{"sft": {"sft.yaml", "sft.jsonl"}, "dpo": {"dpo.yaml", "dpo.jsonl"}, "kto": {"kto.yaml", "kto.jsonl"},
	"grpo": {"grpo.yaml", "grpo.jsonl"}, "distil": {"distil.yaml", "distil.jsonl"}}

func (a *app) init() *cli.Command {
	return &cli.Command{
		Name: "init", Usage: "write a commented recipe and a tiny dataset beside it", ArgsUsage: "[sft|dpo|kto|grpo|distil]",
		Description: "Files that exist are never replaced.\n\nExamples:\n  trainer init sft\n  trainer init grpo --dir my-experiment",
		Flags:       []cli.Flag{&cli.StringFlag{Name: "dir", Usage: "write into `DIR`", Value: "."}},
		Action: func(c *cli.Context) error {
			kind := c.Args().First()
			if kind == "" {
				kind = "sft"
			}
			files, ok := starters[kind]
			if !ok {
				kinds := slices.Sorted(maps.Keys(starters))
				return &usage{fmt.Sprintf("trainer init: %q is not a kind that can be written yet; there is: %s%s", kind, strings.Join(kinds, ", "), diag.DidYouMean(kind, kinds))}
			}
			return a.start(c.String("dir"), files)
		},
	}
}

// start writes files into dir, all or none.
func (a *app) start(dir string, files []string) error {
	for _, f := range files {
		if _, err := os.Lstat(filepath.Join(dir, f)); !errors.Is(err, fs.ErrNotExist) {
			return &usage{fmt.Sprintf("trainer init: %s exists and is not replaced; choose another folder with --dir", filepath.Join(dir, f))}
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		data, err := starter.ReadFile("starter/" + f)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, f), data, 0o644); err != nil {
			return err
		}
		fmt.Fprintln(a.out, filepath.Join(dir, f))
	}
	fmt.Fprintf(a.out, "try it: trainer run %s\n", filepath.Join(dir, files[0]))
	return nil
}
