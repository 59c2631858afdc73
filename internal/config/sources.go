// Sources: from settings to specs, credentials and policy.

package config

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/internal/callers"
	"understudy/kit/suggest"
	"understudy/spec"
	"understudy/upstream"
)

// readSpec finds a built-in spec by name or reads one from a file.
func readSpec(setting, folder string) (*spec.Spec, error) {
	if !strings.HasSuffix(setting, ".yaml") && !strings.HasSuffix(setting, ".yml") {
		sp, err := upstream.BuiltIn(setting)
		if err != nil {
			return nil, fmt.Errorf("spec: %w", err)
		}
		return sp, nil
	}
	if !filepath.IsAbs(setting) {
		setting = filepath.Join(folder, setting)
	}
	data, err := os.ReadFile(setting)
	if err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	sp, err := upstream.ReadSpec(setting, data)
	if err != nil {
		return nil, fmt.Errorf("spec: %s", strings.TrimPrefix(strings.TrimPrefix(err.Error(), "upstream: "), "spec "))
	}
	return sp, nil
}

// readSpec is the spec of a source.
func (s *Source) readSpec(folder string) (*spec.Spec, error) {
	if s.Generic == "" {
		return readSpec(s.Spec, folder)
	}
	style := "none"
	switch {
	case s.Secret != "" && s.User != "":
		style = "basic"
	case s.Secret != "":
		style = "bearer"
	}
	s.Upstream, s.Rate, s.Concurrency = s.Generic, cmp.Or(s.Rate, genericRate), cmp.Or(s.Concurrency, genericConcurrency)
	s.Timeouts.Stall = cmp.Or(s.Timeouts.Stall, genericStall)
	return spec.NewGeneric(s.Generic, style)
}

// A generic source may be sent more by default than an API with limits, and its streams may
// pause for longer.
const (
	genericStall       = Duration(2 * time.Minute)
	genericRate        = 1000
	genericConcurrency = 256
	genericWrites      = 512
)

// Generic are the settings of a server for one generic source, "generic", that every program
// on this machine may ask, and people on it may look at.
func Generic(url string) (*Settings, error) {
	c := &Settings{Sources: map[string]*Source{"generic": {Generic: url, Loopback: true}}}
	c.Limits.Writes, c.Viewer.Role = genericWrites, understudy.RoleAll
	c.defaults()
	return c, c.check()
}

// Open are the sources that programs on this machine need no credential for, by name.
func Open(sources map[string]*Source) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		if sources[name].Loopback {
			names = append(names, name)
		}
	}
	return names
}

// ReadSources makes the nouns of every configured source, in name order.
func (c *Settings) ReadSources(folder string) ([]*spec.Source, error) {
	var out []*spec.Source
	for _, name := range slices.Sorted(maps.Keys(c.Sources)) {
		s := c.Sources[name]
		sp, err := s.readSpec(folder)
		if err != nil {
			return nil, fmt.Errorf("sources.%s.%w", name, err)
		}
		if err := sp.Headers.Add(s.Headers.Send, s.Headers.Ignore); err != nil {
			return nil, fmt.Errorf("sources.%s.%w", name, err)
		}
		if s.Listen == "" {
			if sp.Port == 0 {
				return nil, fmt.Errorf("sources.%s.listen: spec %s names no port; write HOST:PORT", name, sp.Name)
			}
			s.Listen = net.JoinHostPort("127.0.0.1", strconv.Itoa(sp.Port))
		}
		if s.User == "" && slices.Contains(slices.Collect(maps.Values(sp.Vars)), "user") {
			return nil, fmt.Errorf("sources.%s.user: spec %s needs it", name, sp.Name)
		}
		if err := s.checkTokens(sp); err != nil {
			return nil, fmt.Errorf("sources.%s.%w", name, err)
		}
		src := &spec.Source{Name: name, Spec: sp, User: s.User, PublicURL: strings.TrimSuffix(s.PublicURL, "/"), Polls: s.Polls, Media: s.Media,
			UpstreamAges: s.Ages == agesUpstream}
		if src.Roots, err = readRoots(sp, s.Roots); err != nil {
			return nil, fmt.Errorf("sources.%s.roots: %w", name, err)
		}
		if len(src.Roots) > 0 {
			sp.Cover()
		}
		if err := CheckPolls(src, s); err != nil {
			return nil, fmt.Errorf("sources.%s.polls: %w", name, err)
		}
		if err := checkSync(src, s); err != nil {
			return nil, fmt.Errorf("sources.%s.sync: %w", name, err)
		}
		if err := s.Answers.check(src); err != nil {
			return nil, fmt.Errorf("sources.%s.answers: %w", name, err)
		}
		if err := checkMedia(src); err != nil {
			return nil, fmt.Errorf("sources.%s.media: %w", name, err)
		}
		out = append(out, src)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("sources: nothing is configured; add one (docs/settings.md shows it) or try --demo")
	}
	if err := c.Connect.checkOrigins(c, out); err != nil {
		return nil, err
	}
	return out, c.checkRetention(out)
}

// checkPolls fills in the default, the kinds most looked at, and refuses what
// cannot be polled.
func CheckPolls(src *spec.Source, s *Source) error {
	if s.Polls == nil {
		for _, kind := range []string{"calls", "messages", "conferences"} {
			if _, err := src.PollTarget(kind); err == nil {
				src.Polls = append(src.Polls, kind)
			}
		}
		return nil
	}
	for _, entry := range s.Polls {
		_, err := src.PollTarget(entry)
		if err == nil {
			continue
		}
		why := strings.TrimPrefix(err.Error(), understudy.ErrInvalid.Error()+": ")
		if strings.HasPrefix(entry, "/") {
			path, _, _ := strings.Cut(entry, "?")
			return fmt.Errorf("%s%s", why, suggest.Hint(understudy.Clip(path), ends(src.PollPaths())))
		}
		var known []string
		for _, k := range src.Spec.Kinds {
			if _, err := src.PollTarget(k.Name); err == nil {
				known = append(known, k.Name)
			}
		}
		if k := src.Spec.Kind(entry); k != nil && len(k.Lists) > 0 {
			return fmt.Errorf("%s; name it in sync instead, to have it held whole", why)
		}
		return fmt.Errorf("%s%s", why, suggest.Hint(understudy.Clip(entry), known))
	}
	return nil
}

// ends are the last segments of paths, as people write them in polls.
func ends(paths []string) []string {
	var out []string
	for _, path := range paths {
		out = append(out, path, path[strings.LastIndexByte(path, '/'):])
	}
	return out
}

// ReadCredentials fetches every credential's secret.
func (c *Settings) ReadCredentials(ctx context.Context, secrets Secrets, by string) ([]callers.Credential, error) {
	var out []callers.Credential
	for _, cred := range c.Credentials {
		secret, err := secrets(ctx, cred.Secret)
		if err != nil {
			return nil, fmt.Errorf("credentials: %s: secret: %w", cred.Name, err)
		}
		one, err := c.ScopeOf(cred.scope(), by)
		if err != nil {
			return nil, fmt.Errorf("credentials: %s: %w", cred.Name, err)
		}
		one.Name, one.User, one.Secret = cred.Name, cred.User, secret
		out = append(out, one)
	}
	return out, nil
}

// readRoots reads the names of roots: the parts of an id with slashes between them.
func readRoots(sp *spec.Spec, names []string) ([]string, error) {
	var roots []string
	vars := sp.Roots.Vars
	for _, name := range names {
		switch parts := strings.Split(name, "/"); {
		case len(vars) == 0:
			return nil, fmt.Errorf("spec %s names none: its lists lie under no account or repository", sp.Name)
		case name == spec.AllRoots, name == spec.AskedRoots:
			roots = append(roots, name)
		case len(parts) != len(vars) || slices.Contains(parts, "") || strings.ContainsAny(name, spec.IDSeparator+"{}%?#"):
			return nil, fmt.Errorf("%q: want {%s}, %s or %s", understudy.Clip(name), strings.Join(vars, "}/{"), spec.AllRoots, spec.AskedRoots)
		default:
			roots = append(roots, strings.Join(parts, spec.IDSeparator))
		}
	}
	return roots, nil
}

// checkSync refuses a kind in sources.*.sync that the spec does not have.
func checkSync(src *spec.Source, s *Source) error {
	for _, kind := range s.Sync {
		if src.Spec.Kind(kind) == nil {
			text := understudy.Clip(kind)
			return fmt.Errorf("spec %s has no kind %q%s", src.Spec.Name, text, suggest.Hint(text, kindNames(src.Spec)))
		}
	}
	return nil
}

func kindNames(sp *spec.Spec) []string {
	var names []string
	for _, k := range sp.Kinds {
		names = append(names, k.Name)
	}
	return names
}

// checkMedia refuses kinds that have no contents.
func checkMedia(src *spec.Source) error {
	var known []string
	for _, k := range src.Spec.Kinds {
		if len(k.Media) > 0 {
			known = append(known, k.Name)
		}
	}
	for _, kind := range src.Media {
		if !slices.Contains(known, kind) {
			return fmt.Errorf("spec %s has no contents of %q%s", src.Spec.Name, understudy.Clip(kind), suggest.Hint(understudy.Clip(kind), known))
		}
	}
	return nil
}
