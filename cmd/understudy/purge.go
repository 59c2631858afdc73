// Purge: forgets a page or a record, in a running server or in its folder.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
	"understudy/internal/config"

	"understudy"
	"understudy/internal/crawl"
	"understudy/internal/diagnostics"
	"understudy/internal/store"
	"understudy/kit/suggest"
	"understudy/mirror"
)

type purgeCmd struct {
	Source string `arg:"" help:"A configured source."`
	What   string `arg:"" name:"key-or-record" help:"A path with its query as a program asks for it, or KIND/ID."`
	place
}

// purgeWait bounds a purge in a running server.
const purgeWait = 90 * time.Second

// Help is what --help says below the flags.
func (c *purgeCmd) Help() string {
	return "Forgets the page held under a key, or a record in every shape with the pages that show it and its files. The next reader gets it from upstream, where nothing changes.\n" +
		"docs/purge.md shows examples."
}

// Run asks the server that holds the folder, or does it in the folder itself
// when nobody does.
func (c *purgeCmd) Run(ctx context.Context, p *process) error {
	wanted := diagnostics.Purge{Source: c.Source, What: c.What}
	var done diagnostics.Purged
	err := c.work(p, func(server runInfo) (err error) {
		done, err = server.purge(ctx, wanted)
		return err
	}, func(cfg *config.Settings, settings string, dir *folder) error {
		sources, err := cfg.ReadSources(settings)
		if err != nil {
			return err
		}
		a, err := aimAt(sources, wanted)
		if err != nil {
			return usageError{err}
		}
		done, err = purgeFolder(ctx, cfg, dir, a)
		return err
	})
	if err != nil {
		return err
	}
	return printPurged(p.stdout, c.What, done)
}

func printPurged(w io.Writer, what string, done diagnostics.Purged) error {
	if done == (diagnostics.Purged{}) {
		_, err := fmt.Fprintf(w, "nothing was held of %s\n", what)
		return err
	}
	_, err := fmt.Fprintf(w, "forgotten: %s, %s, %s\n", countOf(done.Pages, "page"), countOf(done.Versions, "version"), countOf(done.Files, "file"))
	return err
}

func countOf(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// aim is what a purge names, understood.
type aim struct {
	source   *understudy.Source
	target   *understudy.Target // a key; nil: a record
	kind, id string             // the record; of a key too, when it names one
}

// aimAt understands a purge. Errors wrap ErrInvalid and say what is near.
func aimAt(sources []*understudy.Source, p diagnostics.Purge) (aim, error) {
	byName := map[string]*understudy.Source{}
	for _, src := range sources {
		byName[src.Name] = src
	}
	src := byName[p.Source]
	if src == nil {
		names := slices.Sorted(maps.Keys(byName))
		return aim{}, invalid("no source is called %q%s; there is %s", config.Clip(p.Source), suggest.Hint(config.Clip(p.Source), names), strings.Join(names, ", "))
	}
	if strings.HasPrefix(p.What, "/") || strings.Contains(p.What, "://") {
		t, err := src.Spec.Follow(src.Name, p.What)
		switch {
		case err != nil:
			return aim{}, err
		case t.Kind == nil:
			return aim{}, invalid("%s is no path of %s; nothing is ever held of it", config.Clip(p.What), src.Spec.Title)
		}
		return aim{source: src, target: t, kind: t.Kind.Name, id: t.ID}, nil
	}
	name, id, ok := strings.Cut(p.What, "/")
	if !ok || name == "" || id == "" {
		return aim{}, invalid("%q names neither a key nor a record; write a path like %s or a record like calls/CA…", config.Clip(p.What), somePath(src.Spec))
	}
	kind := src.Spec.Kind(name)
	if kind == nil {
		var kinds []string
		for _, k := range src.Spec.Kinds {
			kinds = append(kinds, k.Name)
		}
		return aim{}, invalid("%s has no kind %q%s", src.Spec.Title, config.Clip(name), suggest.Hint(config.Clip(name), kinds))
	}
	if len(kind.ID) == 0 {
		return aim{}, invalid("%s have no ids; name a key, a path with its query", kind.Title)
	}
	return aim{source: src, kind: name, id: id}, nil
}

// isRecord reports whether a record is to be forgotten, by its id, its path or
// the path of its content.
func (a *aim) isRecord() bool {
	return a.id != "" && (a.target == nil || a.target.Instance != nil || a.target.Media != nil)
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{understudy.ErrInvalid}, args...)...)
}

// somePath is a list's path, to show what a key looks like.
func somePath(spec *understudy.Spec) string {
	for _, k := range spec.Kinds {
		for _, l := range k.Lists {
			return l.Path
		}
	}
	return "/"
}

// purge forgets in the running house.
func (h *house) purge(ctx context.Context, p diagnostics.Purge) (diagnostics.Purged, error) {
	a, err := aimAt(h.sources, p)
	if err != nil {
		return diagnostics.Purged{}, err
	}
	var found mirror.Forgotten
	files := 0
	if a.isRecord() {
		if files, err = h.files.Forget(a.source.Name, a.kind, a.id); err != nil {
			return diagnostics.Purged{}, err
		}
		if err := h.walker.Forgot(ctx, a.source.Name, a.kind); err != nil {
			return diagnostics.Purged{}, err
		}
	}
	if a.target != nil {
		found, err = h.mirror.Forget(ctx, a.target)
	} else {
		found, err = h.mirror.ForgetRecord(ctx, a.source.Name, a.kind, a.id)
	}
	return diagnostics.Purged{Pages: found.Pages, Versions: found.Versions, Files: files}, err
}

// purgeFolder forgets in a folder no server uses.
func purgeFolder(ctx context.Context, cfg *config.Settings, dir *folder, a aim) (done diagnostics.Purged, err error) {
	path := dir.store(cfg)
	if _, err := os.Stat(path); err != nil {
		return done, nil // nothing was ever held
	}
	db, err := store.Open(ctx, store.Options{Path: path, Specs: map[string]*understudy.Spec{a.source.Name: a.source.Spec}, Now: time.Now})
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if a.target != nil {
		held, err := db.ForgetPage(ctx, a.target.Key)
		if held {
			done.Pages = 1
		}
		if err != nil || !a.isRecord() {
			return done, err
		}
	}
	if done.Files, err = purgeMedia(dir, a); err != nil {
		return done, err
	}
	if err := crawl.Forgot(ctx, db, a.source.Name, a.kind, time.Now()); err != nil {
		return done, err
	}
	pages, versions, err := db.ForgetRecord(ctx, a.source.Name, a.kind, a.id)
	done.Pages += pages
	done.Versions = versions
	return done, err
}

// purge asks the running server.
func (r runInfo) purge(ctx context.Context, p diagnostics.Purge) (done diagnostics.Purged, err error) {
	ctx, cancel := context.WithTimeout(ctx, purgeWait)
	defer cancel()
	body, err := json.Marshal(p)
	if err != nil {
		return done, err
	}
	return done, r.ask(ctx, http.MethodPost, "/-/purge", body, &done)
}
