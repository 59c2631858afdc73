// This file reads the specs, credentials and polls of the configured sources.

package config

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"understudy"
	"understudy/internal/callers"
	"understudy/internal/smallfile"
	"understudy/kit/suggest"
	"understudy/mirror"
	"understudy/mirror/shadow"
	"understudy/spec"
	"understudy/upstream"
)

// readSpec returns a built-in spec by its name, or reads a spec from a file. sum is the SHA-256 of the file.
func readSpec(setting, folder string) (sp *spec.Spec, sum [sha256.Size]byte, err error) {
	if !strings.HasSuffix(setting, ".yaml") && !strings.HasSuffix(setting, ".yml") {
		sp, err := upstream.ReadBuiltIn(setting)
		if err != nil {
			return nil, sum, fmt.Errorf("spec: %w", understudy.StripPrefixes(err))
		}
		return sp, sum, nil
	}
	setting = resolvePath(folder, setting)
	data, err := smallfile.Read(setting, upstream.MaxSpec)
	if err != nil {
		return nil, sum, fmt.Errorf("spec: %w", err)
	}
	if sp, err = upstream.ReadSpec(setting, data); err != nil {
		return nil, sum, fmt.Errorf("spec: %s", strings.TrimPrefix(understudy.PlainText(err), "spec "))
	}
	return sp, sha256.Sum256(data), nil
}

// readSpec returns the spec of a source. sum is the SHA-256 of the spec's file.
func (s *Source) readSpec(folder string) (sp *spec.Spec, sum [sha256.Size]byte, err error) {
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
	s.Upstream = s.Generic
	sp, err = spec.NewGeneric(s.Generic, style)
	return sp, sum, err
}

// Defaults of a generic source. They allow more requests than an API with limits would, and longer pauses in a stream.
const (
	genericStall       = Duration(2 * time.Minute)
	genericRate        = 1000
	genericConcurrency = 256
	genericWrites      = 512
)

// NewGeneric returns the settings of a server for one generic source, "generic". Every client on this machine may
// use the source, and people on this machine may view it.
func NewGeneric(url string) (*Settings, error) {
	c := &Settings{Sources: map[string]*Source{"generic": {Generic: url, Loopback: true}}}
	c.Limits.Writes, c.Viewer.Role = genericWrites, understudy.RoleAll
	c.setDefaults()
	return c, c.check()
}

// OpenSources returns the names of the sources for which clients on this machine need no credential.
func OpenSources(sources map[string]*Source) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		if sources[name].Loopback {
			names = append(names, name)
		}
	}
	return names
}

// checkPassedHeaders returns the names of headers.pass in their canonical form.
func (s *Source) checkPassedHeaders(sp *spec.Spec) (names []string, err error) {
	for _, name := range s.Headers.Pass {
		name = http.CanonicalHeaderKey(name)
		if !sp.IsGeneric() || !spec.IsMisleading(name) {
			return nil, fmt.Errorf("%s is passed on anyway; name only headers that are removed from requests, such as X-Forwarded-Proto", name)
		}
		names = append(names, name)
	}
	return names, nil
}

// ReadSources returns every configured source, sorted by name.
func (c *Settings) ReadSources(folder string) ([]*spec.Source, error) {
	var out []*spec.Source
	for _, name := range slices.Sorted(maps.Keys(c.Sources)) {
		s := c.Sources[name]
		sp, sum, err := s.readSpec(folder)
		if err != nil {
			return nil, fmt.Errorf("sources.%s.%w", name, err)
		}
		if err := sp.Headers.Add(s.Headers.Send, s.Headers.Ignore); err != nil {
			return nil, fmt.Errorf("sources.%s.%w", name, err)
		}
		if sp.Headers.Pass, err = s.checkPassedHeaders(sp); err != nil {
			return nil, fmt.Errorf("sources.%s.headers.pass: %w", name, err)
		}
		if s.Listen == "" {
			if sp.Port == 0 {
				return nil, fmt.Errorf("sources.%s.listen: spec %s names no port; write HOST:PORT", name, sp.Name)
			}
			s.Listen = net.JoinHostPort("127.0.0.1", strconv.Itoa(sp.Port))
		}
		if err := s.readClients(c, folder); err != nil {
			return nil, fmt.Errorf("sources.%s.clients: %w", name, err)
		}
		if s.User == "" && slices.Contains(slices.Collect(maps.Values(sp.Vars)), "user") {
			return nil, fmt.Errorf("sources.%s.user: spec %s needs it", name, sp.Name)
		}
		if err := s.checkTokens(sp); err != nil {
			return nil, fmt.Errorf("sources.%s.%w", name, err)
		}
		src := &spec.Source{Name: name, Spec: sp, User: s.User, PublicURL: strings.TrimSuffix(s.PublicURL, "/"), Polls: s.Polls,
			MediaKinds:   s.Media,
			UpstreamAges: s.Ages == agesUpstream, SpecSum: sum}
		if src.Roots, err = readRoots(sp, s.Roots); err != nil {
			return nil, fmt.Errorf("sources.%s.roots: %w", name, err)
		}
		if len(src.Roots) > 0 {
			sp.SplitByRoot()
		}
		if err := CheckPolls(src, s); err != nil {
			return nil, fmt.Errorf("sources.%s.polls: %w", name, err)
		}
		if err := checkKinds(src, s.Sync); err != nil {
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
		return nil, fmt.Errorf("sources: nothing is configured; add one (docs/reference/settings.md shows it) or try understudy demo")
	}
	if err := c.Connect.checkOrigins(c, out); err != nil {
		return nil, err
	}
	return out, c.checkRetention(out)
}

// CheckPolls sets the polls of a source. Without a setting these are the kinds that people view most. A kind
// that cannot be polled is an error.
func CheckPolls(src *spec.Source, s *Source) error {
	if s.Polls == nil {
		for _, kind := range []string{"calls", "messages", "conferences"} {
			if _, err := src.ResolvePoll(kind); err == nil {
				src.Polls = append(src.Polls, kind)
			}
		}
		return nil
	}
	for _, entry := range s.Polls {
		_, err := src.ResolvePoll(entry)
		if err == nil {
			continue
		}
		why := understudy.PlainText(err)
		if strings.HasPrefix(entry, "/") {
			path, _, _ := strings.Cut(entry, "?")
			return fmt.Errorf("%s%s", why, suggest.Hint(understudy.Clip(path), pollNames(src.PollPaths())))
		}
		var known []string
		for _, k := range src.Spec.Kinds {
			if _, err := src.ResolvePoll(k.Name); err == nil {
				known = append(known, k.Name)
			}
		}
		if k := src.Spec.Kind(entry); k != nil && len(k.Lists) > 0 {
			return fmt.Errorf("%s; name it in sync instead, to have it mirrored completely", why)
		}
		return fmt.Errorf("%s%s", why, suggest.Hint(understudy.Clip(entry), known))
	}
	return nil
}

// PollCost returns how many lists of a source are polled, including the lists of synced kinds, and what polling costs.
func (s *Source) PollCost(src *spec.Source, ages mirror.Ages) (lists int, cost mirror.PollCost) {
	keys := map[understudy.Key]bool{}
	for _, entry := range slices.Concat(src.Polls, s.Sync) {
		if t, err := src.ResolvePoll(entry); err == nil {
			keys[t.Key] = true
		}
	}
	return len(keys), mirror.PollsPerDay(len(keys), ages, s.Rate)
}

// ClientOptions returns the options of the client of a source. The caller adds what its clients share.
func (s *Source) ClientOptions(c *Settings, src *spec.Source, secrets []understudy.Secret) upstream.Options {
	o := upstream.Options{
		Source: src, Base: s.Upstream, User: cmp.Or(s.Login, s.User), Rate: s.Rate, Concurrency: s.Concurrency, Queue: c.Limits.Queue,
		MaxMedia: int64(s.MaxMedia), MaxBody: MaxBody(c, src.Name, os.ReadFile),
		Connect: s.Timeouts.Connect.Std(), FirstByte: s.Timeouts.FirstByte.Std(), Stall: s.Timeouts.Stall.Std(), Total: s.Timeouts.Total.Std(),
	}
	if len(secrets) > 0 {
		o.Secret, o.Pool = secrets[0], secrets[1:]
	}
	return o
}

// pollNames returns paths and their last segments, because people may write either in polls.
func pollNames(paths []string) []string {
	var out []string
	for _, path := range paths {
		out = append(out, path, path[strings.LastIndexByte(path, '/'):])
	}
	return out
}

// ReadCredentials returns the credentials of the settings with their secrets.
func (c *Settings) ReadCredentials(ctx context.Context, secrets Secrets, by string) ([]callers.Credential, error) {
	var out []callers.Credential
	for _, cred := range c.Credentials {
		secret, err := secrets(ctx, cred.Secret)
		if err != nil {
			return nil, fmt.Errorf("credentials: %s: secret: %w", cred.Name, err)
		}
		one, err := c.ParseScope(cred.scope(), by)
		if err != nil {
			return nil, fmt.Errorf("credentials: %s: %w", cred.Name, err)
		}
		one.Name, one.User, one.Secret = cred.Name, cred.User, secret
		out = append(out, one)
	}
	return out, nil
}

// readRoots parses the names of roots: the parts of an id, separated by slashes.
func readRoots(sp *spec.Spec, names []string) ([]string, error) {
	var roots []string
	vars := sp.Roots.Vars
	for _, name := range names {
		switch parts := strings.Split(name, "/"); {
		case len(vars) == 0:
			return nil, fmt.Errorf("spec %s has no roots: its lists do not belong to an account or repository", sp.Name)
		case name == spec.AllRoots, name == spec.RequestedRoots:
			roots = append(roots, name)
		case len(parts) != len(vars) || slices.Contains(parts, "") || strings.ContainsAny(name, spec.IDSeparator+"{}%?#"):
			return nil, fmt.Errorf("%q is not the name of a root; write {%s}, %s or %s", understudy.Clip(name), strings.Join(vars, "}/{"),
				spec.AllRoots, spec.RequestedRoots)
		default:
			roots = append(roots, strings.Join(parts, spec.IDSeparator))
		}
	}
	return roots, nil
}

// checkKinds returns an error for a kind that the spec does not have. An empty name is none.
func checkKinds(src *spec.Source, kinds []string) error {
	for _, kind := range kinds {
		if kind != "" && src.Spec.Kind(kind) == nil {
			text := understudy.Clip(kind)
			return fmt.Errorf("spec %s has no kind %q%s", src.Spec.Name, text, suggest.Hint(text, src.Spec.KindNames()))
		}
	}
	return nil
}

// checkMedia returns an error if media settings name a kind without media contents.
func checkMedia(src *spec.Source) error {
	var known []string
	for _, k := range src.Spec.Kinds {
		if len(k.Media) > 0 {
			known = append(known, k.Name)
		}
	}
	for _, kind := range src.MediaKinds {
		if !slices.Contains(known, kind) {
			return fmt.Errorf("spec %s has no contents of %q%s", src.Spec.Name, understudy.Clip(kind), suggest.Hint(understudy.Clip(kind), known))
		}
	}
	return nil
}

// answersConfig has one word for all lists of a source, or one word for each kind. Its keys are kinds. The key ""
// (in the file "*") stands for all other kinds.
type answersConfig map[string]shadow.Answers

// UnmarshalYAML reads one word (auto) or a word for each kind ({calls: records, "*": auto}).
func (a *answersConfig) UnmarshalYAML(n *yaml.Node) error {
	out := answersConfig{}
	word := func(kind string, v *yaml.Node) error {
		if v.Kind != yaml.ScalarNode {
			return fmt.Errorf("line %d: write auto, upstream or records", v.Line)
		}
		out[kind] = shadow.Answers(v.Value)
		if err := out[kind].Check(); err != nil || v.Value == "" {
			text := understudy.Clip(v.Value)
			hint := suggest.Hint(text, []string{"auto", "upstream", "records"})
			return fmt.Errorf("line %d: %q is not known; write auto, upstream or records%s", v.Line, text, hint)
		}
		return nil
	}
	err := error(nil)
	switch n.Kind {
	case yaml.ScalarNode:
		err = word("", n)
	case yaml.MappingNode:
		err = visitPairs(n, func(k, v *yaml.Node) error {
			if k.Value == "*" {
				return word("", v)
			}
			return word(k.Value, v)
		})
	default:
		err = fmt.Errorf("line %d: write auto, upstream or records, or one of them for each kind", n.Line)
	}
	*a = out
	return err
}

// check returns an error if the setting names a kind that the spec does not have.
func (a answersConfig) check(src *spec.Source) error {
	return checkKinds(src, slices.Sorted(maps.Keys(a)))
}
