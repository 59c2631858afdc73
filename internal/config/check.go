// This file checks the settings before anything starts.

package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"understudy"
	"understudy/internal/store"
	"understudy/kit/suggest"
)

// check returns everything wrong with the settings that can be found without a file, the network or a spec. All
// errors are reported together, in a stable order.
func (c *Settings) check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	add := func(where string, err error) {
		if err != nil {
			bad("%s%w", where, err)
		}
	}
	add("viewer.listen: ", CheckAddress(c.Viewer.Listen))
	add("viewer.public_url: ", checkURL(c.Viewer.PublicURL))
	if err := checkURL(c.Nodes.URL); err != nil {
		bad("nodes.url: %w", err)
	} else if c.TLS.IsOn() && strings.HasPrefix(c.Nodes.URL, "http:") {
		bad("nodes.url: %s: the viewer's port serves TLS; write https", c.Nodes.URL)
	}
	add("tracing.endpoint: ", checkURL(c.Tracing.Endpoint))
	add("viewer.", c.checkSignIn())
	add("store.dsn: ", checkDSN(c.Store.DSN))
	if c.TLS.ACME != nil && store.IsPostgreSQL(c.Store.DSN) && c.Nodes.Secret == "" {
		bad("tls.acme: processes on a PostgreSQL database encrypt the certificates with nodes.secret; write nodes: {secret: file:PATH}")
	}
	add("store.", c.Store.checkContents())
	add("backup.to: ", c.Store.checkBackup(c.Backup.To))
	add("viewer.role: ", c.checkRole(c.Viewer.Role))
	visitSettings(reflect.ValueOf(c), "", "", func(path, name string, v reflect.Value) bool {
		add(path+": ", findSetting(name).check(v))
		return true
	})
	if _, err := parseProxies(c.Proxies); err != nil {
		bad("proxies: %w", err)
	}
	add("", checkMemory(c))
	for _, name := range slices.Sorted(maps.Keys(c.Sources)) {
		if err := c.Sources[name].check(name); err != nil {
			bad("sources.%s.%w", name, err)
		} else if err := c.Sources[name].Tables.check(c); err != nil {
			bad("sources.%s.tables.%w", name, err)
		}
	}
	names := map[string]bool{}
	for i, cred := range c.Credentials {
		if err := c.checkCredential(cred, names); err != nil {
			bad("credentials[%d]: %w", i, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Jobs.Kinds)) {
		if c.Jobs.Kinds[name] == nil || !jobKindName.MatchString(name) {
			bad("jobs.kinds.%s: write a name of lower-case letters, digits and any of ._-, and a block of settings such as {}", name)
		}
	}
	switch at := c.Metrics.Listen; {
	case at == "":
	case CheckAddress(at) != nil:
		bad("metrics.listen: %w", CheckAddress(at))
	case openToNetwork(at):
		bad("metrics.listen: %s is open to the network, and no credential is needed there; write 127.0.0.1, or read /-/metrics on the "+
			"viewer's port by a credential with allow: metrics", at)
	case c.Sources[MetricsName] != nil:
		bad("metrics.listen: a source is called %s, as this port is; give it another name", MetricsName)
	}
	errs = append(errs, c.checkFeed()...)
	errs = append(errs, c.Watches.check(&c.Mail)...)
	errs = append(errs, c.Push.check()...)
	errs = append(errs, c.Connect.check(c)...)
	add("audit.", c.checkAudit())
	for _, name := range slices.Sorted(maps.Keys(c.Log.Levels)) {
		if !slices.Contains(logPackages, name) {
			bad("log.levels: %q does not log; write any of %s%s", understudy.Clip(name), strings.Join(logPackages, ", "),
				suggest.Hint(understudy.Clip(name), logPackages))
		}
	}
	if _, taken := c.Roles[understudy.RoleAll]; taken {
		bad("roles.all: that role is built in; choose another name")
	}
	return errors.Join(errs...)
}

// jobKindName matches the names of kinds of jobs for programs outside the server. Those of the server contain a blank.
var jobKindName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// keyWords is the beginning of a DSN in key words, as libpq also takes it.
var keyWords = regexp.MustCompile(`^\s*\w+\s*=`)

// checkDSN returns an error if a text names neither a PostgreSQL database nor a file. The error does not contain the text,
// which may have a password.
func checkDSN(dsn string) error {
	scheme, _, ok := strings.Cut(dsn, "://")
	switch {
	case ok && !store.IsPostgreSQL(dsn):
		return fmt.Errorf("%s databases are not supported; give the path of an SQLite file, or a PostgreSQL database as "+
			"postgres://user@host/database", scheme)
	case !ok && keyWords.MatchString(dsn):
		return errors.New("a PostgreSQL database is written as postgres://user@host/database")
	}
	return nil
}

// check returns an error if the settings of a source are invalid.
func (s *Source) check(name string) error {
	switch {
	case s == nil:
		return fmt.Errorf("spec: the source is empty; it needs at least a spec")
	case name == "number" || name == "search" || name == "jobs" || name == "-" || strings.ContainsFunc(name, isInvalidNameRune):
		return fmt.Errorf("name: %q cannot name a source; use lower-case letters, digits and dashes", name)
	case s.Generic != "":
		if err := s.checkGeneric(); err != nil {
			return err
		}
	case s.Loopback:
		return fmt.Errorf("loopback: it is for generic sources; here every program needs a credential")
	case s.Spec == "":
		return fmt.Errorf("spec: write a built-in name or the path of a .yaml")
	}
	if s.Ages != "" && s.Ages != agesOwn && s.Ages != agesUpstream {
		text := understudy.Clip(s.Ages)
		return fmt.Errorf("freshness: %q is none of %s and %s%s", text, agesOwn, agesUpstream,
			suggest.Hint(text, []string{agesOwn, agesUpstream}))
	}
	if err := checkURL(s.Upstream); err != nil {
		return fmt.Errorf("upstream: %w", err)
	}
	if err := checkURL(s.PublicURL); err != nil {
		return fmt.Errorf("public_url: %w", err)
	}
	if s.TLS != "" && s.TLS != tlsOff {
		return fmt.Errorf("tls: %q is not known; write %s, or remove it; tls at the top of the file names the certificate",
			understudy.Clip(s.TLS), tlsOff)
	}
	if s.Listen != "" {
		if err := CheckAddress(s.Listen); err != nil {
			return fmt.Errorf("listen: %w", err)
		}
	}
	return nil
}

// checkGeneric returns an error for settings that a source without a spec cannot have.
func (s *Source) checkGeneric() error {
	if err := checkURL(s.Generic); err != nil {
		return fmt.Errorf("generic: %w", err)
	}
	for _, one := range []struct {
		name string
		set  bool
	}{
		{"spec", s.Spec != ""}, {"upstream", s.Upstream != ""}, {"polls", s.Polls != nil}, {"sync", s.Sync != nil}, {"covers", s.Roots != nil},
		{"media", s.Media != nil}, {"pool", s.Pool != nil}, {"token", s.Token != (tokenConfig{})}, {"comparisons", s.Checks != 0},
		{"freshness", s.Ages != ""},
	} {
		if one.set {
			return fmt.Errorf("%s: a generic source has none", one.name)
		}
	}
	return nil
}

func isInvalidNameRune(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_')
}

// checkCredential returns an error if a credential is invalid, and adds its name to names.
func (c *Settings) checkCredential(cred *credentialConfig, names map[string]bool) error {
	switch {
	case cred == nil:
		return fmt.Errorf("empty; it needs name, source, user, secret and role")
	case cred.Name == "":
		return fmt.Errorf("name: every credential needs one")
	case isReserved(cred.Name):
		return fmt.Errorf("name: %s is what people on this machine and commands are called; choose another", cred.Name)
	case names[cred.Name]:
		return fmt.Errorf("name: %q appears twice", cred.Name)
	case cred.Secret == "":
		return fmt.Errorf("%s: secret: write file:PATH or cmd:COMMAND", cred.Name)
	case cred.Role == "" && serviceOf(cred.Allow) == "":
		return fmt.Errorf("%s: role: every credential needs one", cred.Name)
	}
	names[cred.Name] = true
	if _, err := c.ParseScope(cred.scope(), ""); err != nil {
		return fmt.Errorf("%s: %w", cred.Name, err)
	}
	return nil
}

func (c *Settings) checkRole(role string) error {
	if role == "" || role == understudy.RoleAll {
		return nil
	}
	if _, ok := c.Roles[role]; !ok {
		known := append(slices.Sorted(maps.Keys(c.Roles)), understudy.RoleAll)
		return fmt.Errorf("%q is not a role%s", role, suggest.Hint(role, known))
	}
	return nil
}

// parseAllow parses a method and a path pattern, such as "POST /path/*/x.json".
func parseAllow(text string) (understudy.Allow, error) {
	method, path, ok := strings.Cut(text, " ")
	methods := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "*"}
	if !ok || !slices.Contains(methods, method) || !strings.HasPrefix(path, "/") || strings.ContainsAny(path, " ?#") {
		return understudy.Allow{}, fmt.Errorf("%q: write a method and a path, as in POST /2010-04-01/Accounts/*/Messages.json", text)
	}
	for segment := range strings.SplitSeq(strings.TrimSuffix(path, "/**"), "/") {
		if strings.Contains(segment, "*") && segment != "*" {
			return understudy.Allow{}, fmt.Errorf("%q: a * stands for a whole segment, so %s matches nothing; write * in its place", text, segment)
		}
	}
	return understudy.Allow{Method: method, Path: path}, nil
}

// CheckAddress returns an error if addr is not HOST:PORT. An empty host would mean every interface. Every interface
// must be written out (0.0.0.0 or ::), so that a typing error does not open a port to the network.
func CheckAddress(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%q: write HOST:PORT, as in 127.0.0.1:4114", addr)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n > 65535 {
		return fmt.Errorf("%q: the port must be a number from 0 to 65535", addr)
	}
	if host == "" {
		return fmt.Errorf("%q has no host; write 127.0.0.1, or 0.0.0.0 for every interface", addr)
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "localhost" {
		return fmt.Errorf("%q: the host must be an IP address or localhost", addr)
	}
	return nil
}

func checkURL(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return fmt.Errorf("it is not a plain URL; write https://HOST or http://HOST, without credentials, query or fragment")
	}
	return nil
}
