// Version: what was built, from what.

package main

import (
	"fmt"
	"runtime/debug"
)

type versionCmd struct{}

// Run prints one line.
func (versionCmd) Run(p *process) error {
	_, err := fmt.Fprintln(p.stdout, "understudy", version())
	return err
}

// version is the module's version, or the revision it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v, dirty := info.Main.Version, ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && (v == "" || v == "(devel)"):
			v = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	if v == "" {
		v = "(devel)"
	}
	return v + dirty + " " + info.GoVersion
}
