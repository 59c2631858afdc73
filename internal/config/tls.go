// This file contains the settings of TLS.

package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"understudy"
	"understudy/internal/certificate"
)

// tlsConfig says with which certificate the ports of the viewer and of the sources serve TLS. The zero value means none.
type tlsConfig struct {
	Self bool   `yaml:"-"` // whether the server makes the certificate itself
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
}

// tlsOff is the value of the setting sources.NAME.tls.
const tlsOff = "off"

// UnmarshalYAML reads the word self, or the names of two files.
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
	if t.Self = n.Value == "self"; !t.Self && (t.Cert == "" || t.Key == "") {
		return fmt.Errorf("line %d: tls: write self, or {cert: FILE, key: FILE}", n.Line)
	}
	return nil
}

// IsOn reports whether the port of the viewer serves TLS.
func (t *tlsConfig) IsOn() bool { return *t != tlsConfig{} }

// IsOnFor reports whether the port of a source serves TLS.
func (t *tlsConfig) IsOnFor(s *Source) bool { return t.IsOn() && s.TLS != tlsOff }

// Read reads the certificate of the ports. Its files are relative to folder. An authority is in the data folder.
func (t *tlsConfig) Read(c *Settings, folder, data string) (*certificate.Certificate, error) {
	o := certificate.Options{Cert: t.Cert, Key: t.Key, Hosts: []string{"localhost", "127.0.0.1", "::1"}}
	for _, path := range []*string{&o.Cert, &o.Key} {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(folder, *path)
		}
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
