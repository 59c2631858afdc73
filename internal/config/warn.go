// This file warns of settings that work but are risky.

package config

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"

	"understudy"
	"understudy/internal/callers"
	"understudy/kit/suggest"
	"understudy/spec"
)

// minSecret is the recommended minimum length in bytes of a secret that the operator chooses.
const minSecret = 16

// minDistinct is the minimum number of distinct characters in a secret. Only one random secret in 10^6 has fewer.
const minDistinct = 5

// IsBehindProxy reports whether people reach the viewer through a reverse proxy. Then a caller without a credential
// never counts as a person on this machine.
func (v *viewerConfig) IsBehindProxy() bool { return v.PublicURL != "" && !isLoopbackURL(v.PublicURL) }

// Warnings returns warnings about risky settings. Each warning names its setting. Files of secrets are relative to folder.
func (c *Settings) Warnings(folder string, sources []*spec.Source) (all []string) {
	warn := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	all = slices.Clone(c.Renamed)
	if v := &c.Viewer; v.Role == "" && (v.SignIn == "" || v.SignIn == signInNone) {
		warn("viewer.role: it is empty, so everybody without a credential gets 403 in the viewer; write viewer: {role: NAME}, or choose " +
			"viewer.sign_in")
	}
	if v := &c.Viewer; v.Role != "" && v.IsBehindProxy() {
		warn("viewer.role: has no effect without a credential, because viewer.public_url says that a proxy is in front; set " +
			"viewer.sign_in to say how people sign in there")
	}
	const unencrypted = "%s is open to the network without encryption; write tls: self or tls: {cert: FILE, key: FILE}, or listen on " +
		"127.0.0.1 behind a proxy with TLS"
	if openToNetwork(c.Viewer.Listen) && !c.TLS.IsOn() {
		warn("viewer.listen: "+unencrypted, c.Viewer.Listen)
	}
	for _, src := range sources {
		s := c.Sources[src.Name]
		if strings.HasPrefix(s.Token.URL, "http://") && !isLoopbackURL(s.Token.URL) {
			warn("sources.%s.token.url: %s is sent the secret without encryption; write https", src.Name, s.Token.URL)
		}
		if need := busyMemory + int64(s.MaxBody)*partForBody; s.MaxBody > 0 && c.Limits.Memory > 0 && need > int64(c.Limits.Memory) {
			warn("sources.%s.max_body: an answer of %d MiB may take the process beyond limits.memory; lower max_body or write "+
				"a limit of at least %dMiB", src.Name, s.MaxBody>>20, (need+1<<20-1)>>20)
		}
		if openToNetwork(s.Listen) && !c.TLS.IsOnFor(s) {
			warn("sources.%s.listen: "+unencrypted, src.Name, s.Listen)
		}
		if strings.HasPrefix(s.Upstream, "http://") && !isLoopbackURL(s.Upstream) {
			warn("sources.%s.upstream: %s sends the secret and every record without encryption; write https", src.Name, s.Upstream)
		}
	}
	for _, one := range NamedSecrets(c) {
		all = append(all, warnOfOpenSecret(one, folder)...)
	}
	for _, cred := range c.Credentials {
		for _, text := range cred.Allow {
			if a, err := parseAllow(text); err == nil {
				all = append(all, checkAllow(cred, a, sources)...)
			}
		}
	}
	return all
}

// warnOfOpenSecret returns a warning if users other than the file's owner and group may open a secret.
func warnOfOpenSecret(one NamedSecret, folder string) []string {
	path, ok := strings.CutPrefix(string(one.Ref), "file:")
	if !ok || runtime.GOOS == "windows" {
		return nil
	}
	path = resolvePath(folder, path)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o007 == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: every user of this machine may open %s (mode %04o); chmod 600 it", one.Name, path,
		info.Mode().Perm())}
}

// WeakSecrets returns a warning for each credential with a secret that is easy to guess.
func WeakSecrets(all []callers.Credential) (weak []string) {
	for _, c := range all {
		weak = append(weak, WeakSecret("credentials: "+c.Name+".secret", c.Secret)...)
	}
	return weak
}

// WeakSecret returns a warning if a secret is easy to guess. where names the secret's setting.
func WeakSecret(where string, secret understudy.Secret) []string {
	text := secret.Reveal()
	const better = ", so it can be guessed; openssl rand -hex 16 makes a better one"
	seen := map[rune]bool{}
	for _, r := range text {
		seen[r] = true
	}
	switch {
	case len(text) < minSecret:
		return []string{fmt.Sprintf("%s: shorter than %d characters%s", where, minSecret, better)}
	case len(seen) < minDistinct:
		return []string{fmt.Sprintf("%s: repeats %d characters%s", where, len(seen), better)}
	}
	return nil
}

// checkAllow returns a warning for an allow entry whose path is not in the spec but differs by a single word
// from a path of the spec.
func checkAllow(cred *credentialConfig, a understudy.Allow, sources []*spec.Source) []string {
	near := ""
	for _, src := range sources {
		if src.Name != cred.Source {
			continue
		}
		for _, path := range specPaths(src.Spec) {
			odd, meant := compareSegments(strings.Split(a.Path, "/"), strings.Split(path, "/"))
			switch {
			case odd == "":
				continue
			case odd == meant:
				return nil
			case strings.EqualFold(odd, meant) || suggest.ClosestWord(odd, []string{meant}) != "":
				near = path
			}
		}
	}
	if near == "" {
		return nil
	}
	return []string{fmt.Sprintf("credentials: %s: allow: the spec has no path %s; did you mean %s?", cred.Name, a.Path, near)}
}

func specPaths(s *spec.Spec) []string {
	all := map[string]bool{}
	for _, k := range s.Kinds {
		for j := range k.Lists {
			all[k.Lists[j].Path] = true
		}
		for j := range k.Instances {
			all[k.Instances[j].Path] = true
		}
		for j := range k.Media {
			all[k.Media[j].Path] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// compareSegments compares the path of an allow entry with a path template. If the entry covers the template, both results
// are the same word. If one literal segment differs, the results are the two segments. Otherwise both are empty.
func compareSegments(path, template []string) (odd, meant string) {
	if len(path) != len(template) {
		return "", ""
	}
	odd, meant = "/", "/"
	for i, text := range path {
		want := template[i]
		variable := strings.Contains(want, "{")
		switch {
		case text == want, variable && text != "":
		case odd != "/" || text == "*":
			return "", ""
		default:
			odd, meant = text, want
		}
	}
	return odd, meant
}

// openToNetwork reports whether other machines can reach a listen address.
func openToNetwork(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	return err == nil && !isLoopbackHost(host)
}

func isLoopbackURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && isLoopbackHost(u.Hostname())
}

func isLoopbackHost(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.Unmap().IsLoopback()
}
