package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

// release is the version of the product.
const release = "0.1.0"

// versionText is the release, with the commit where the build knows it.
func versionText() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return release
	}
	text := release
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			text += "+" + s.Value[:12]
		}
	}
	return text
}

func (a *app) version() *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "print the version", Flags: []cli.Flag{jsonFlag},
		Action: func(c *cli.Context) error {
			if c.Bool("json") {
				return a.printJSON(map[string]string{"version": versionText(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH})
			}
			fmt.Fprintf(a.out, "trainer %s (%s, %s/%s)\n", versionText(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}
