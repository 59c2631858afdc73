// This file contains the settings of the feed of changes, webhooks, forecasts, tables, watches, the mail server and notifications.

package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/feed"
	"understudy/internal/forecast"
	"understudy/internal/publish"
	"understudy/internal/push"
	"understudy/internal/store"
	"understudy/internal/tables"
	"understudy/internal/watch"
	"understudy/kit/suggest"
	"understudy/spec"
)

// feedConfig has the limits of the feed of changes.
type feedConfig struct {
	Subscribers     int      `yaml:"subscribers"`
	SubscribersEach int      `yaml:"subscribers_each"`
	Buffer          int      `yaml:"buffer"`
	Heartbeat       Duration `yaml:"heartbeat"`
	Stall           Duration `yaml:"stall"`
	Wait            Duration `yaml:"wait"`
	Look            Duration `yaml:"poll_every"`
	Pause           Duration `yaml:"pause"`
	ZeroMQ          string   `yaml:"zmq"`
}

// Webhook is an address to which changes are delivered.
type Webhook struct {
	Name         string    `yaml:"name"`
	URL          string    `yaml:"url"`
	Secret       SecretRef `yaml:"secret"`
	Source       string    `yaml:"source"`
	Kinds        []string  `yaml:"kinds"`
	Fields       []string  `yaml:"fields"`
	Role         string    `yaml:"role"`
	AllowPrivate bool      `yaml:"allow_private"`
}

// checkFeed returns what is wrong with the settings of the feed, webhooks and forecasts.
func (c *Settings) checkFeed() (errs []error) {
	if at := c.Feed.ZeroMQ; at != "" {
		if err := CheckAddress(at); err != nil {
			errs = append(errs, fmt.Errorf("feed.zmq: %w", err))
		} else if openToNetwork(at) {
			errs = append(errs, fmt.Errorf("feed.zmq: %s is open to the network, and sockets of ZeroMQ send their secrets as clear text; "+
				"write 127.0.0.1, and reach it from other machines through a tunnel of SSH or TLS", at))
		}
	}
	names := map[string]bool{}
	for i, w := range c.Webhooks {
		if err := c.checkWebhook(w, names); err != nil {
			errs = append(errs, fmt.Errorf("webhooks[%d]: %w", i, err))
		}
	}
	if _, err := c.ParseAlerts(); err != nil {
		errs = append(errs, err)
	}
	return errs
}

// checkWebhook returns an error if a webhook is invalid. It adds the webhook's name to names.
func (c *Settings) checkWebhook(w *Webhook, names map[string]bool) error {
	switch {
	case w == nil:
		return fmt.Errorf("empty; it needs name, url, secret and role")
	case w.Name == "" || len(w.Name) > 100 || strings.ContainsFunc(w.Name, isInvalidNameRune):
		return fmt.Errorf("name: %q: use lower-case letters, digits and dashes", understudy.Clip(w.Name))
	case names[w.Name]:
		return fmt.Errorf("name: %q appears twice", w.Name)
	case w.Secret == "" && !publish.IsURL(w.URL):
		return fmt.Errorf("%s: secret: write file:PATH or cmd:COMMAND", w.Name)
	case w.Role == "":
		return fmt.Errorf("%s: role: missing; name the role whose view of the changes is sent", w.Name)
	}
	names[w.Name] = true
	if err := c.checkRole(w.Role); err != nil {
		return fmt.Errorf("%s: role: %w", w.Name, err)
	}
	known := slices.Sorted(maps.Keys(c.Sources))
	if w.Source == "" && len(known) == 1 {
		w.Source = known[0]
	}
	if !slices.Contains(known, w.Source) {
		return fmt.Errorf("%s: source: %q is not configured%s", w.Name, understudy.Clip(w.Source), suggest.Hint(understudy.Clip(w.Source), known))
	}
	if err := publish.CheckURL(w.URL, w.AllowPrivate); err != nil {
		return fmt.Errorf("%s: %w", w.Name, err)
	}
	return nil
}

// ReadWebhooks returns the webhooks with their secrets.
func (c *Settings) ReadWebhooks(ctx context.Context, secrets Secrets) ([]feed.Hook, error) {
	var out []feed.Hook
	for _, w := range c.Webhooks {
		hook := w.Hook()
		if w.Secret != "" {
			secret, err := secrets(ctx, w.Secret)
			if err != nil {
				return nil, fmt.Errorf("webhooks: %s: secret: %w", w.Name, err)
			}
			hook.Secret = secret
		}
		out = append(out, hook)
	}
	return out, nil
}

// Hook returns the webhook without its secret.
func (w *Webhook) Hook() feed.Hook {
	return feed.Hook{Name: w.Name, URL: w.URL, Source: w.Source, Kinds: w.Kinds, Fields: w.Fields, Role: w.Role, AllowPrivate: w.AllowPrivate}
}

// forecastConfig is a forecast, with the webhook that is notified of it.
type forecastConfig struct {
	Of      string `yaml:"of"`
	Level   string `yaml:"level"`
	By      string `yaml:"by"`
	Percent string `yaml:"percent"`
	Webhook string `yaml:"webhook"`
}

// ParseAlerts returns the forecasts that have a webhook to notify.
func (c *Settings) ParseAlerts() (alerts []forecast.Alert, err error) {
	for i, one := range c.Forecasts {
		a, err := c.parseAlert(one)
		if err != nil {
			return nil, fmt.Errorf("forecasts[%d]: %w", i, err)
		}
		if slices.Contains(alerts, a) {
			return nil, fmt.Errorf("forecasts[%d]: it appears twice", i)
		}
		alerts = append(alerts, a)
	}
	return alerts, nil
}

// parseAlert returns a forecast and the webhook that is notified of it.
func (c *Settings) parseAlert(one *forecastConfig) (a forecast.Alert, err error) {
	if one == nil {
		return a, fmt.Errorf("empty; it needs of and webhook")
	}
	s, err := understudy.ParseSeries(one.Of)
	if err != nil {
		return a, fmt.Errorf("of: %w", err)
	}
	q, err := forecast.NewQuestion(s, one.Level, one.By, one.Percent)
	if err != nil {
		return a, err
	}
	var names []string
	for _, w := range c.Webhooks {
		if w == nil {
			continue
		}
		if names = append(names, w.Name); w.Name == one.Webhook && w.Source == s.Source {
			return forecast.Alert{Question: q, Webhook: one.Webhook}, nil
		}
	}
	return a, fmt.Errorf("webhook: no webhook of the source %s is called %q%s", s.Source, understudy.Clip(one.Webhook),
		suggest.Hint(one.Webhook, names))
}

// CheckAlerts returns the forecasts that have a webhook to notify. It returns an error if the role of such a
// webhook may not see the forecast number.
func (c *Settings) CheckAlerts(gate *access.Gate, sources []*spec.Source) (alerts []forecast.Alert, err error) {
	if alerts, err = c.ParseAlerts(); err != nil {
		return nil, err
	}
	for i, a := range alerts {
		role := c.Webhooks[slices.IndexFunc(c.Webhooks, func(w *Webhook) bool { return w.Name == a.Webhook })].Role
		src := slices.IndexFunc(sources, func(s *spec.Source) bool { return s.Name == a.Question.Series.Source })
		if src < 0 {
			return nil, fmt.Errorf("forecasts[%d]: no source is called %q", i, a.Question.Series.Source)
		}
		if err := forecast.CheckAlert(a, role, gate, sources[src]); err != nil {
			return nil, fmt.Errorf("forecasts[%d]: %w", i, err)
		}
	}
	return alerts, nil
}

// tablesConfig says which kinds of a source are written to tables, and where.
type tablesConfig struct {
	DSN    SecretRef `yaml:"dsn"`
	Schema string    `yaml:"schema"`
	Role   string    `yaml:"role"`
	Kinds  []string  `yaml:"kinds"`
}

// check returns an error if the settings of a source's tables are wrong.
func (t *tablesConfig) check(c *Settings) error {
	switch at, err := url.Parse(string(t.DSN)); {
	case t.DSN == "" && t.Schema == "" && t.Role == "" && len(t.Kinds) == 0:
		return nil
	case t.DSN == "":
		return errors.New("dsn: missing; write postgres://user@host/database, or file:PATH of a file with a DSN")
	case store.IsPostgreSQL(string(t.DSN)) && err == nil && at.User != nil && at.User.String() != at.User.Username():
		return errors.New("dsn: it contains a password; write the DSN into a file, and its path here: file:PATH")
	case t.Role == "":
		return errors.New("role: missing; name the role whose view of the records the tables contain")
	case len(t.Kinds) == 0:
		return errors.New("kinds: missing; name the kinds that become tables, such as [calls, messages]")
	}
	if err := c.checkRole(t.Role); err != nil {
		return fmt.Errorf("role: %w", err)
	}
	return nil
}

// ReadTables returns which tables the sources have. It returns an error if a role cannot have one of them. A DSN without a
// password may stand in the settings.
func ReadTables(ctx context.Context, c *Settings, sources []*spec.Source, gate *access.Gate, read Secrets) (all []tables.Target,
	err error) {
	for _, src := range sources {
		s := c.Sources[src.Name].Tables
		if s.DSN == "" {
			continue
		}
		t := tables.Target{Source: src, DSN: understudy.NewSecret(string(s.DSN)), Role: s.Role, Kinds: s.Kinds,
			Schema: cmp.Or(s.Schema, strings.ReplaceAll(src.Name, "-", "_"))}
		if !store.IsPostgreSQL(string(s.DSN)) {
			if t.DSN, err = read(ctx, s.DSN); err != nil {
				return nil, fmt.Errorf("sources.%s.tables.dsn: %w", src.Name, err)
			}
		}
		if err := t.Check(gate); err != nil {
			return nil, fmt.Errorf("sources.%s.tables: %w", src.Name, understudy.StripPrefixes(err))
		}
		all = append(all, t)
	}
	return all, nil
}

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

// pushConfig says which browsers and devices may receive notifications.
type pushConfig struct {
	Contact      string      `yaml:"contact"`
	Hosts        []string    `yaml:"hosts"`
	AllowPrivate bool        `yaml:"allow_private"`
	APNs         *apnsConfig `yaml:"apns"` // nil if no device of Apple receives notifications
}

// apnsConfig has the settings of Apple's push service.
type apnsConfig struct {
	Server string    `yaml:"server"`
	Team   string    `yaml:"team"`
	KeyID  string    `yaml:"key_id"`
	Key    SecretRef `yaml:"key"`
	Topic  string    `yaml:"topic"`
}

// check returns what is wrong with the settings of notifications.
func (p *pushConfig) check() (errs []error) {
	if u, err := url.Parse(p.Contact); p.Contact != "" && (err != nil || u.Scheme != "mailto" && u.Scheme != "https") {
		errs = append(errs, fmt.Errorf("push.contact: %q: write mailto:ADDRESS or https://ADDRESS", understudy.Clip(p.Contact)))
	}
	for _, host := range p.Hosts {
		if strings.Trim(host, ".") == "" || host != strings.ToLower(host) || strings.ContainsAny(host, "/@ *") {
			errs = append(errs, fmt.Errorf("push.hosts: %q: write a host in small letters, such as push.example.com", understudy.Clip(host)))
		}
	}
	if p.APNs == nil {
		return errs
	}
	if p.APNs.Key == "" {
		errs = append(errs, errors.New("push.apns.key: write file:PATH with the .p8 file of Apple"))
	}
	if err := p.APNs.options().Check(); err != nil {
		errs = append(errs, fmt.Errorf("push.apns.%w", err))
	}
	return errs
}

func (a *apnsConfig) options() *push.APNsOptions {
	return &push.APNsOptions{Server: a.Server, Team: a.Team, KeyID: a.KeyID, Topic: a.Topic}
}

// ReadPolicy returns the settings with the key of APNs, which it reads.
func (p *pushConfig) ReadPolicy(ctx context.Context, secrets Secrets, now func() time.Time) (push.Policy, error) {
	policy := push.Policy{Contact: p.Contact, Hosts: slices.Clone(p.Hosts), AllowPrivate: p.AllowPrivate}
	if p.APNs == nil {
		return policy, nil
	}
	o := p.APNs.options()
	key, err := secrets(ctx, p.APNs.Key)
	if o.Key, o.Now = key, now; err == nil {
		policy.APNs, err = push.NewAPNs(*o)
	}
	if err != nil {
		return policy, fmt.Errorf("push.apns.key: %w", err)
	}
	return policy, nil
}
