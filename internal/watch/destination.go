// This file contains the addresses to which a watch may send, as far as the settings permit them.

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

// Channel is the way in which a watch sends its messages.
type Channel string

// The channels of a watch.
const (
	Webhook Channel = "webhook" // sends signed JSON to an address
	Slack   Channel = "slack"   // sends JSON with a text, in the format of Slack's incoming webhooks
	Mail    Channel = "mail"
	Push    Channel = "push" // notifies the browsers and devices of the watch's owner
)

// The maximum length of an address in bytes. For mail addresses see RFC 5321, 4.5.3.1.3.
const (
	maxURLBytes  = 500
	maxMailBytes = 254
)

// Destination is the receiver to which a watch sends its messages.
type Destination struct {
	Channel Channel `json:"channel"`
	To      string  `json:"to"`               // the receiver: a mail address, or a URL, which may contain a secret token; "" for Push
	Secret  string  `json:"secret,omitempty"` // the secret with which webhook messages are signed
}

// Host returns the receiver without the parts of its address that may be secret.
func (d Destination) Host() string {
	switch d.Channel {
	case Mail:
		return d.To
	case Push:
		return "the owner's browsers and devices"
	}
	u, err := url.Parse(d.To)
	if err != nil {
		return ""
	}
	return u.Host
}

// Rules say to which destinations watches may send messages, and how often. A destination that the rules do not
// name is refused.
type Rules struct {
	Hosts        []string      // the permitted hosts of URLs, as "host" or "host:port"
	Mail         []string      // the permitted domains of mail addresses
	AllowPrivate bool          // whether http, private networks and this machine are permitted
	Every        time.Duration // the minimum time between two messages of a watch by Slack or mail; 0 means a minute
	Pause        time.Duration // how long a receiver may fail before its watch is stopped; 0 means a day
}

// Channels returns the channels for which the settings permit a destination.
func (p *Policy) Channels() []Channel {
	var all []Channel
	if len(p.Rules.Hosts) > 0 {
		all = append(all, Webhook, Slack)
	}
	if len(p.Rules.Mail) > 0 && p.Mailer != nil {
		all = append(all, Mail)
	}
	if p.Push != nil && (p.Push.PublicKey() != "" || p.Push.HasDevices()) {
		all = append(all, Push)
	}
	return all
}

// checkDestination returns ErrInvalid for a destination that is malformed or not permitted.
func (p *Policy) checkDestination(d Destination) error {
	switch d.Channel {
	case Mail:
		return p.checkMail(d)
	case Webhook, Slack:
		return p.Rules.checkURL(d)
	case Push:
		if d != (Destination{Channel: Push}) || !slices.Contains(p.Channels(), Push) {
			return newInvalid("a notification has no address, and needs the setting push.contact or push.apns")
		}
		return nil
	}
	return newInvalid("%q is not a way to notify; choose webhook, slack, mail or push", understudy.Clip(string(d.Channel)))
}

// checkURL checks the address of a webhook and, except for Slack, its secret.
func (r *Rules) checkURL(d Destination) error {
	if len(d.To) > maxURLBytes {
		return newInvalid("the address is longer than %d bytes", maxURLBytes)
	}
	if err := webhook.CheckURL(d.To, r.AllowPrivate); err != nil {
		return newInvalid("%w", err)
	}
	u, err := url.Parse(d.To)
	if err != nil {
		return newInvalid("the address is not a URL")
	}
	host := strings.ToLower(u.Host)
	if u.Port() == "443" && u.Scheme == "https" {
		host = strings.ToLower(u.Hostname())
	}
	if !slices.Contains(r.Hosts, host) {
		return newInvalid("the settings do not permit watches to notify %s; an administrator can add it to watches.hosts", understudy.Clip(host))
	}
	if d.Channel == Webhook {
		if err := webhook.CheckSecret(understudy.NewSecret(d.Secret)); err != nil {
			return newInvalid("%w", err)
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
		return newInvalid("this server sends no mail; an administrator can name a server under mail in the settings")
	case !slices.Contains(p.Rules.Mail, strings.ToLower(domain)):
		return newInvalid("the settings do not permit mail to %s; an administrator can add it to watches.mail", understudy.Clip(domain))
	}
	return nil
}

// checkAddress returns an error for an invalid mail address. It permits only a bare ASCII address without name and
// quotes, so that the address cannot end a header line or an SMTP command.
func checkAddress(to string) error {
	at := strings.LastIndexByte(to, '@')
	odd := strings.ContainsFunc(to, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),:;<>[\]`, r)
	})
	parsed, err := mail.ParseAddress(to)
	if err != nil || odd || at < 1 || len(to) > maxMailBytes || parsed.Name != "" || parsed.Address != to {
		return newInvalid("%q is not a mail address; write it like desk@example.com", understudy.Clip(to))
	}
	return nil
}

func newInvalid(format string, args ...any) error {
	return fmt.Errorf("watch: %w: %w", understudy.ErrInvalid, fmt.Errorf(format, args...))
}
