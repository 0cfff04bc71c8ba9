package main

import (
	"github.com/urfave/cli/v2"

	"trainer/recipe"
)

func (a *app) resolve() *cli.Command {
	return &cli.Command{
		Name: "resolve", Usage: "print every value of a recipe and where it comes from", ArgsUsage: "recipe.yaml",
		Description: "The output is a recipe that runs identically.\n\nExamples:\n  trainer resolve recipe.yaml\n  trainer resolve recipe.yaml --set train.batch_size=16",
		Flags:       []cli.Flag{setFlag},
		Action: func(c *cli.Context) error {
			path, err := one(c, "a recipe")
			if err != nil {
				return err
			}
			r, err := recipe.Load(path, c.StringSlice("set")...)
			if err != nil {
				return err
			}
			_, err = a.out.Write(r.Resolved())
			return err
		},
	}
}

func (a *app) schema() *cli.Command {
	return &cli.Command{
		Name: "schema", Usage: "print the JSON Schema of recipes, for editors",
		Action: func(c *cli.Context) error {
			_, err := a.out.Write(recipe.Schema())
			return err
		},
	}
}
