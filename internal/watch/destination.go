// Destinations: where a watch tells, and which the settings permit.

package watch

import (
	"fmt"
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/webhook"
)

// Channel is the way messages take.
type Channel string

// The channels.
const (
	Webhook Channel = "webhook" // JSON, signed
	Slack   Channel = "slack"   // JSON with a text, as Slack's incoming webhooks take it
	Mail    Channel = "mail"
)

// Bounds of an address, in bytes; of mail: RFC 5321, 4.5.3.1.3.
const (
	maxURL  = 500
	maxMail = 254
)

// Destination is where a watch tells.
type Destination struct {
	Channel Channel `json:"channel"`
	To      string  `json:"to"`               // a URL, or a mail address; a URL may hold a token
	Secret  string  `json:"secret,omitempty"` // signs webhooks
}

// Host is the receiver without what its address may hold of secrets.
func (d Destination) Host() string {
	if d.Channel == Mail {
		return d.To
	}
	u, err := url.Parse(d.To)
	if err != nil {
		return ""
	}
	return u.Host
}

// Rules say where watches may tell, and how often. Nothing is permitted that they do not
// name.
type Rules struct {
	Hosts        []string      // of URLs, as "host" or "host:port"
	Mail         []string      // domains of mail addresses
	AllowPrivate bool          // http, private networks and this machine
	Every        time.Duration // between two messages of a watch by Slack or mail; 0: a minute
	Pause        time.Duration // a watch that failed for so long is stopped; 0: a day
}

func (r Rules) withDefaults() Rules {
	if r.Every <= 0 {
		r.Every = time.Minute
	}
	if r.Pause <= 0 {
		r.Pause = 24 * time.Hour
	}
	return r
}

// Channels are those on which some destination is permitted.
func (p *Policy) Channels() []Channel {
	var all []Channel
	if len(p.Rules.Hosts) > 0 {
		all = append(all, Webhook, Slack)
	}
	if len(p.Rules.Mail) > 0 && p.Mailer != nil {
		all = append(all, Mail)
	}
	return all
}

// check refuses a destination that is malformed or not permitted, as ErrInvalid.
func (p *Policy) check(d Destination) error {
	switch d.Channel {
	case Mail:
		return p.checkMail(d)
	case Webhook, Slack:
		return p.Rules.checkURL(d)
	}
	return invalid("%q is no way to tell; choose webhook, slack or mail", understudy.Clip(string(d.Channel)))
}

func (r *Rules) checkURL(d Destination) error {
	if len(d.To) > maxURL {
		return invalid("the address is longer than %d bytes", maxURL)
	}
	if err := webhook.CheckURL(d.To, r.AllowPrivate); err != nil {
		return invalid("%w", err)
	}
	u, err := url.Parse(d.To)
	if err != nil {
		return invalid("the address is no URL")
	}
	host := strings.ToLower(u.Host)
	if u.Port() == "443" && u.Scheme == "https" {
		host = strings.ToLower(u.Hostname())
	}
	if !slices.Contains(r.Hosts, host) {
		return invalid("the settings do not permit watches to tell %s; an administrator may add it to watches.hosts", understudy.Clip(host))
	}
	if d.Channel == Webhook {
		if err := webhook.CheckSecret(understudy.NewSecret(d.Secret)); err != nil {
			return invalid("%w", err)
		}
	}
	return nil
}

func (p *Policy) checkMail(d Destination) error {
	if err := checkAddress(d.To); err != nil {
		return err
	}
	domain := d.To[strings.LastIndexByte(d.To, '@')+1:]
	switch {
	case p.Mailer == nil:
		return invalid("this server sends no mail; an administrator may name a server under mail in the settings")
	case !slices.Contains(p.Rules.Mail, strings.ToLower(domain)):
		return invalid("the settings do not permit mail to %s; an administrator may add it to watches.mail", understudy.Clip(domain))
	}
	return nil
}

// checkAddress takes a bare address of ASCII letters alone, without a name and without
// quotes: nothing in it can end a header line or a command.
func checkAddress(to string) error {
	at := strings.LastIndexByte(to, '@')
	odd := strings.ContainsFunc(to, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),:;<>[\]`, r)
	})
	parsed, err := mail.ParseAddress(to)
	if err != nil || odd || at < 1 || len(to) > maxMail || parsed.Name != "" || parsed.Address != to {
		return invalid("%q is no mail address, such as desk@example.com", understudy.Clip(to))
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("watch: %w: %w", understudy.ErrInvalid, fmt.Errorf(format, args...))
}
