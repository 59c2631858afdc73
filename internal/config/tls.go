// This file contains the settings of TLS.

package config

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"understudy"
	"understudy/internal/acme"
	"understudy/internal/certificate"
	"understudy/internal/smallfile"
	"understudy/kit/header"
)

// tlsConfig says with which certificate the ports of the viewer and of the sources serve TLS. The zero value means none.
type tlsConfig struct {
	Self bool        `yaml:"-"` // whether the server makes the certificate itself
	Cert string      `yaml:"cert"`
	Key  string      `yaml:"key"`
	ACME *acmeConfig `yaml:"acme"` // nil unless an authority issues certificates
}

// acmeConfig says which certificates an authority issues.
type acmeConfig struct {
	Directory string   `yaml:"directory"`
	CA        string   `yaml:"ca"`
	Email     string   `yaml:"email"`
	Names     []string `yaml:"names"`
	Agree     bool     `yaml:"agree"`
}

// letsEncrypt is the directory of the authority without the setting tls.acme.directory.
const letsEncrypt = "https://acme-v02.api.letsencrypt.org/directory"

// check returns an error if the settings are wrong. It sets the default of the directory.
func (a *acmeConfig) check() error {
	a.Directory = cmp.Or(a.Directory, letsEncrypt)
	switch isName := regexp.MustCompile(`^([a-z0-9-]+\.)*[a-z0-9-]*[a-z][a-z0-9-]*$`).MatchString; {
	case checkURL(a.Directory) != nil || !strings.HasPrefix(a.Directory, "https:"):
		return fmt.Errorf("directory: %q: write the https URL of the authority's directory", understudy.Clip(a.Directory))
	case !a.Agree:
		return fmt.Errorf("agree: write agree: true if you accept the terms of service of the authority at %s", a.Directory)
	case len(a.Names) == 0 || slices.ContainsFunc(a.Names, func(n string) bool { return !isName(n) }):
		return fmt.Errorf("names: %q: write the hosts in small letters, such as [calls.example.com], without ports", a.Names)
	}
	return nil
}

// ReadOptions returns the options of the manager of the certificates. The file of ca is relative to folder.
func (a *acmeConfig) ReadOptions(folder string) (o acme.Options, err error) {
	o = acme.Options{Directory: a.Directory, Email: a.Email, Names: a.Names}
	if a.CA == "" {
		return o, nil
	}
	o.Roots, err = readAuthorities(resolvePath(folder, a.CA))
	return o, err
}

// readAuthorities reads a PEM file with certificates of authorities.
func readAuthorities(path string) (*x509.CertPool, error) {
	text, err := smallfile.Read(path, 1<<20)
	pool := x509.NewCertPool()
	if err == nil && !pool.AppendCertsFromPEM(text) {
		err = fmt.Errorf("%s contains no certificate; name a PEM file with the certificate of an authority", path)
	}
	return pool, err
}

// tlsOff is the value of the setting sources.NAME.tls.
const tlsOff = "off"

// Clients says which clients may use the port of a source. readClients sets the fields that are no settings.
type Clients struct {
	CA            string         `yaml:"ca"`
	Addresses     []string       `yaml:"addresses"`
	Authorities   *x509.CertPool `yaml:"-"` // the certificates in CA; nil if clients need none
	From, Proxies header.Proxies `yaml:"-"` // the blocks of Addresses, and the reverse proxies in front of the port
}

// readClients reads which clients may use the port of a source. The file with the certificates is relative to folder.
func (s *Source) readClients(all *Settings, folder string) (err error) {
	c := &s.Clients
	c.Proxies = ReverseProxies(all)
	if c.From, err = parseBlocks(c.Addresses); err != nil || c.CA == "" {
		return err
	}
	if !all.TLS.IsOnFor(s) {
		return errors.New("the port has no TLS, which ca needs; write tls at the top of the file and no tls: off here, or remove ca")
	}
	c.Authorities, err = readAuthorities(resolvePath(folder, c.CA))
	return err
}

// UnmarshalYAML reads the word self, the names of two files, or the settings of an authority.
func (t *tlsConfig) UnmarshalYAML(n *yaml.Node) error {
	type files tlsConfig // it has no UnmarshalYAML
	if n.Kind == yaml.MappingNode {
		if err := checkNode(n, reflect.TypeFor[files]()); err != nil {
			return err
		}
		if err := n.Decode((*files)(t)); err != nil {
			return err
		}
	}
	hasFiles := t.Cert != "" && t.Key != ""
	if t.Self = n.Value == "self"; t.ACME == nil && !t.Self && !hasFiles || t.ACME != nil && t.Cert+t.Key != "" {
		return fmt.Errorf("line %d: tls: write self, or {cert: FILE, key: FILE}, or {acme: {names: [HOST], agree: true}}", n.Line)
	}
	if t.ACME != nil {
		if err := t.ACME.check(); err != nil {
			return fmt.Errorf("line %d: tls.acme.%w", n.Line, err)
		}
	}
	return nil
}

// IsOn reports whether the port of the viewer serves TLS.
func (t *tlsConfig) IsOn() bool { return *t != tlsConfig{} }

// IsOnFor reports whether the port of a source serves TLS.
func (t *tlsConfig) IsOnFor(s *Source) bool { return t.IsOn() && s.TLS != tlsOff }

// Read reads the certificate of the ports. Its files are relative to folder. An authority is in the data folder.
func (t *tlsConfig) Read(c *Settings, folder, data string) (*certificate.Certificate, error) {
	o := certificate.Options{Hosts: []string{"localhost", "127.0.0.1", "::1"}}
	if t.Cert != "" {
		o.Cert, o.Key = resolvePath(folder, t.Cert), resolvePath(folder, t.Key)
	}
	urls := []string{"//" + c.Viewer.Listen, c.Viewer.PublicURL, c.Nodes.URL}
	for _, s := range c.Sources {
		urls = append(urls, "//"+s.Listen, s.PublicURL)
	}
	for _, text := range urls {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" {
			continue
		}
		if ip, err := netip.ParseAddr(u.Hostname()); err != nil {
			o.Hosts = append(o.Hosts, strings.ToLower(u.Hostname()))
		} else if !ip.IsUnspecified() {
			o.Hosts = append(o.Hosts, ip.Unmap().String())
		}
	}
	used, err := certificate.Read(data, o, time.Now)
	if err != nil {
		return nil, fmt.Errorf("tls: %w", understudy.StripPrefixes(err))
	}
	return used, nil
}
