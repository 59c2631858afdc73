// This file compares the settings file with what the server runs with.

package app

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"understudy/internal/config"
	"understudy/spec"
)

// compare returns how the settings file differs from the settings in use, and applies nothing. A secret that needs a restart and a
// spec file differ if their contents have changed.
func (e *enforcer) compare(ctx context.Context) (any, error) {
	cfg, err := e.opts.ReadSettings()
	if err != nil {
		return nil, err
	}
	if err := checkSources(e.opts.Settings, cfg); err != nil {
		return nil, err
	}
	again, err := cfg.ReadSources(e.opts.Folder) // which also sets the addresses that the specs name
	if err != nil {
		return nil, err
	}
	if _, err := e.policies.newGate(cfg); err != nil {
		return nil, err
	}
	restart, err := e.settings.secrets.NeedRestart(ctx, cfg, e.opts.Secrets)
	if err != nil {
		return nil, err
	}
	all := config.Compare(config.Values(*e.opts.Settings), config.Values(*e.settings.current.Load()), config.Values(*cfg))
	for _, name := range append(restart, changedSpecs(e.sources, again)...) {
		all = append(all, config.Difference{Name: name, Running: "(content at the start)", File: "(new content)", Restart: true})
	}
	return config.Pending{Changes: all}, nil
}

// changedSpecs returns the names of the sources whose spec file has changed since the start. A changed spec needs a
// restart.
func changedSpecs(started, again []*spec.Source) (names []string) {
	for i, src := range started { // both slices are sorted by name
		if again[i].SpecSum != src.SpecSum && again[i].SpecSum != ([sha256.Size]byte{}) && src.SpecSum != ([sha256.Size]byte{}) {
			names = append(names, "sources."+src.Name+".spec")
		}
	}
	return names
}

// checkSources returns an error if the settings add or remove a source. Such a change needs a restart, because
// every port, file and kind of the source would have to be added or removed.
func checkSources(started, again *config.Settings) error {
	now, want := slices.Sorted(maps.Keys(started.Sources)), slices.Sorted(maps.Keys(again.Sources))
	if !slices.Equal(now, want) {
		return fmt.Errorf("sources: %s are running, and the settings name %s; restart to add or remove a source", strings.Join(now, ", "),
			strings.Join(want, ", "))
	}
	return nil
}
