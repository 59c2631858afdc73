// This file contains the settings of the destinations of watches, and of the mail server.

package config

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"understudy"
	"understudy/internal/watch"
)

// watchesConfig lists the destinations that watches may notify. No other destination is permitted.
type watchesConfig struct {
	Hosts        []string `yaml:"hosts"`
	Mail         []string `yaml:"mail"`
	AllowPrivate bool     `yaml:"allow_private"`
	Every        Duration `yaml:"every"`
	Pause        Duration `yaml:"pause"`
}

// mailConfig has the settings of the mail server.
type mailConfig struct {
	Server string    `yaml:"server"`
	From   string    `yaml:"from"`
	User   string    `yaml:"user"`
	Secret SecretRef `yaml:"secret"`
	TLS    string    `yaml:"tls"`
}

// check returns what is wrong with the settings of watches and of the mail server.
func (w *watchesConfig) check(m *mailConfig) (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, host := range w.Hosts {
		name := host
		if h, _, err := net.SplitHostPort(host); err == nil {
			name = h
		}
		if name == "" || host != strings.ToLower(host) || strings.ContainsAny(host, "/@ *") {
			bad("watches.hosts: %q: write a host in small letters, such as hooks.example.com, with its port if that is not 443",
				understudy.Clip(host))
		}
	}
	for _, domain := range w.Mail {
		if domain == "" || domain != strings.ToLower(domain) || strings.ContainsAny(domain, "@/ *") {
			bad("watches.mail: %q: write a domain in small letters, such as example.com", understudy.Clip(domain))
		}
	}
	switch empty := *m == (mailConfig{}); {
	case empty && len(w.Mail) > 0:
		bad("watches.mail: no mail is sent without a server; write mail: {server: HOST:PORT, from: ADDRESS}")
	case empty:
	case (m.User == "") != (m.Secret == ""):
		bad("mail: user and secret go together; write both or none")
	default:
		if err := m.mailer().Check(); err != nil {
			bad("mail.%w", err)
		}
	}
	return errs
}

func (m *mailConfig) mailer() *watch.Mailer {
	return &watch.Mailer{Server: m.Server, From: m.From, User: m.User, TLS: m.TLS}
}

// Rules returns the rules that say which destinations watches may notify.
func (w *watchesConfig) Rules() watch.Rules {
	return watch.Rules{Hosts: slices.Clone(w.Hosts), Mail: slices.Clone(w.Mail), AllowPrivate: w.AllowPrivate, Every: w.Every.Std(),
		Pause: w.Pause.Std()}
}

// ReadMailer returns the mail server with its secret, or nil if no mail server is set.
func (m *mailConfig) ReadMailer(ctx context.Context, secrets Secrets) (*watch.Mailer, error) {
	if m.Server == "" {
		return nil, nil
	}
	mailer := m.mailer()
	if m.Secret == "" {
		return mailer, nil
	}
	var err error
	if mailer.Secret, err = secrets(ctx, m.Secret); err != nil {
		return nil, fmt.Errorf("mail.secret: %w", err)
	}
	return mailer, nil
}
