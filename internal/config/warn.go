// Warn: settings that work and are risky, in words.

package config

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"understudy"
	"understudy/internal/callers"
	"understudy/kit/suggest"
	"understudy/spec"
)

// leastSecret is how many characters a secret of ours should have.
const leastSecret = 16

// leastDifferent is how many different ones: of a random secret fewer happen once in 10^6.
const leastDifferent = 5

// BehindProxy reports whether people reach the viewer through a proxy, so that
// no caller without a credential is known to be on this machine.
func (v *viewerConfig) BehindProxy() bool { return v.PublicURL != "" && !loopbackURL(v.PublicURL) }

// warnings are what to think about; each names its setting. folder is what
// files of secrets are relative to.
func (c *Settings) Warnings(folder string, sources []*spec.Source) (all []string) {
	warn := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if v := &c.Viewer; v.Role != "" && v.BehindProxy() {
		warn("viewer.role: nobody has it without a credential, because viewer.public_url says that a proxy is in front; viewer.sign_in says " +
			"how people come in there")
	}
	if openToNetwork(c.Viewer.Listen) {
		warn("viewer.listen: %s is open to the network without encryption; listen on 127.0.0.1 behind a proxy with TLS", c.Viewer.Listen)
	}
	for _, src := range sources {
		s := c.Sources[src.Name]
		if strings.HasPrefix(s.Token.URL, "http://") && !loopbackURL(s.Token.URL) {
			warn("sources.%s.token.url: %s is sent the secret without encryption; write https", src.Name, s.Token.URL)
		}
		if need := busyMemory + int64(s.MaxBody)*partForBody; s.MaxBody > 0 && c.Limits.Memory > 0 && need > int64(c.Limits.Memory) {
			warn("sources.%s.max_body: an answer of %d MiB may take the process beyond limits.memory; lower max_body or write "+
				"a limit of at least %dMiB", src.Name, s.MaxBody>>20, (need+1<<20-1)>>20)
		}
		if openToNetwork(s.Listen) {
			warn("sources.%s.listen: %s is open to the network without encryption; listen on 127.0.0.1 behind a proxy with TLS", src.Name, s.Listen)
		}
		if strings.HasPrefix(s.Upstream, "http://") && !loopbackURL(s.Upstream) {
			warn("sources.%s.upstream: %s sends the secret and every record without encryption; write https", src.Name, s.Upstream)
		}
	}
	for _, one := range NamedSecrets(c) {
		all = append(all, openSecret(one, folder)...)
	}
	for _, cred := range c.Credentials {
		for _, text := range cred.Allow {
			if a, err := parseAllow(text); err == nil {
				all = append(all, oddAllow(cred, a, sources)...)
			}
		}
	}
	return all
}

// openSecret warns of a file that others than its owner and group may open.
func openSecret(one NamedSecret, folder string) []string {
	path, ok := strings.CutPrefix(string(one.Ref), "file:")
	if !ok || runtime.GOOS == "windows" {
		return nil
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(folder, path)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o007 == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: every user of this machine may open %s (mode %04o); chmod 600 it", one.Name, path,
		info.Mode().Perm())}
}

// WeakSecrets names the secrets of ours that can be guessed.
func WeakSecrets(all []callers.Credential) (weak []string) {
	for _, c := range all {
		weak = append(weak, WeakSecret("credentials: "+c.Name+".secret", c.Secret)...)
	}
	return weak
}

// WeakSecret says that a secret can be guessed, if it can; where names its setting.
func WeakSecret(where string, secret understudy.Secret) []string {
	text := secret.Reveal()
	const better = ", so it can be guessed; openssl rand -hex 16 makes a better one"
	seen := map[rune]bool{}
	for _, r := range text {
		seen[r] = true
	}
	switch {
	case len(text) < leastSecret:
		return []string{fmt.Sprintf("%s: shorter than %d characters%s", where, leastSecret, better)}
	case len(seen) < leastDifferent:
		return []string{fmt.Sprintf("%s: repeats %d characters%s", where, len(seen), better)}
	}
	return nil
}

// oddAllow warns of an allow entry whose path the spec does not name though one
// word of it is close to what the spec has.
func oddAllow(cred *credentialConfig, a understudy.Allow, sources []*spec.Source) []string {
	near := ""
	for _, src := range sources {
		if src.Name != cred.Source {
			continue
		}
		for _, path := range specPaths(src.Spec) {
			odd, meant := differing(strings.Split(a.Path, "/"), strings.Split(path, "/"))
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

// specPaths are the path templates of a spec.
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

// differing compares an allow entry's path with a template. Both results are
// the same word where it covers the template, two words where one literal
// segment differs, and empty where more does.
func differing(path, template []string) (odd, meant string) {
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

// openToNetwork reports an address that others than this machine reach.
func openToNetwork(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	return err == nil && !loopbackHost(host)
}

func loopbackURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && loopbackHost(u.Hostname())
}

func loopbackHost(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.Unmap().IsLoopback()
}
