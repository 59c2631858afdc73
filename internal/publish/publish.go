// Package publish sends changes to message brokers and buckets, in place of a webhook's HTTP receiver.
package publish

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/webhook"
)

// Message is one change.
type Message struct {
	ID   string    // the same for each attempt, so that a receiver can ignore what it already has
	Key  string    // the id of the record; messages with the same key keep their order
	At   time.Time // when the change was noticed
	Data []byte    // JSON
}

// Options are the settings of a Publisher.
type Options struct {
	// URL is the receiver: nats+tls://HOST/SUBJECT, mqtt+tls://HOST/TOPIC, kafka+tls://HOST/TOPIC or s3://BUCKET/FOLDER. CheckURL
	// describes the parameters.
	URL string
	// Secret is a user and a password, written USER:PASSWORD. For s3 it is an access key and its secret. It may be empty.
	Secret understudy.Secret
	// AllowPrivate permits connections without TLS, and addresses of private networks and of this machine.
	AllowPrivate bool
	Now          func() time.Time
}

// Publisher sends messages to one receiver. It is safe for concurrent use.
type Publisher interface {
	// Publish sends messages in their order. It returns nil when the receiver has stored all of them. After an error, the receiver may
	// have some of them.
	Publish(ctx context.Context, messages []Message) error
}

// sendTimeout is the maximum time for sending messages, with the connection.
const sendTimeout = 30 * time.Second

// ports are the ports of brokers, if the URL names none.
var ports = map[string]string{"nats": "4222", "nats+tls": "4222", "mqtt": "1883", "mqtt+tls": "8883", "kafka": "9092", "kafka+tls": "9093"}

// IsURL reports whether an address is not that of a webhook but of a receiver of this package.
func IsURL(address string) bool {
	scheme, _, _ := strings.Cut(address, "://")
	return scheme == "s3" || ports[scheme] != ""
}

// CheckURL returns an error if the address of a receiver is not permitted, as far as this is known without resolving its name. It may be
// that of a webhook. One of s3 may have the parameters region and endpoint, the URL of another store than Amazon's.
func CheckURL(address string, private bool) error {
	if !IsURL(address) {
		return webhook.CheckURL(address, private)
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || strings.Trim(u.Path, "/") == "":
		return errors.New("url is not complete; write SCHEME://HOST/TOPIC, or s3://BUCKET/FOLDER")
	case u.User != nil || u.Fragment != "":
		return errors.New("url: it can't contain credentials or a fragment")
	case u.Scheme == "s3":
		return checkBucket(u, private)
	case u.RawQuery != "":
		return errors.New("url: it can't contain parameters")
	case !strings.HasSuffix(u.Scheme, "+tls") && !private:
		return fmt.Errorf("url: use %s+tls, or set allow_private", u.Scheme)
	case u.Scheme[:4] == "nats" && strings.ContainsAny(u.Path, "*> "), u.Scheme[:4] == "mqtt" && strings.ContainsAny(u.Path, "+#"):
		return errors.New("url: one topic is needed, not a pattern")
	}
	return webhook.CheckURL("https://"+u.Host, private)
}

func checkBucket(u *url.URL, private bool) error {
	params := u.Query()
	for name := range params {
		if !slices.Contains([]string{"region", "endpoint"}, name) {
			return fmt.Errorf("url: unknown parameter %q; use region and endpoint", understudy.Clip(name))
		}
	}
	if endpoint := params.Get("endpoint"); endpoint != "" {
		if err := webhook.CheckURL(endpoint, private); err != nil {
			return fmt.Errorf("url: endpoint: %w", err)
		}
	}
	return nil
}

// CheckSecret returns an error if a secret is set and malformed. The error contains no part of the secret.
func CheckSecret(s understudy.Secret) error {
	if user, _, ok := strings.Cut(s.Reveal(), ":"); s.Reveal() != "" && (!ok || user == "") {
		return errors.New("secret: write USER:PASSWORD, for s3 the access key and its secret")
	}
	return nil
}

// New returns the Publisher of a URL. It opens no connection. It returns an error if the URL or the secret is invalid.
func New(o Options) (Publisher, error) {
	if err := CheckURL(o.URL, o.AllowPrivate); err != nil {
		return nil, err
	}
	if err := CheckSecret(o.Secret); err != nil {
		return nil, err
	}
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, err
	}
	if u.Scheme == "s3" {
		return newBucket(u, o)
	}
	scheme, tls := strings.CutSuffix(u.Scheme, "+tls")
	address := u.Host
	if u.Port() == "" {
		address = net.JoinHostPort(u.Hostname(), ports[u.Scheme])
	}
	user, password, _ := strings.Cut(o.Secret.Reveal(), ":")
	b := broker{
		address: address, host: u.Hostname(), topic: strings.Trim(u.Path, "/"), tls: tls, user: user, password: password,
		dialer: &net.Dialer{Timeout: sendTimeout / 3, Control: webhook.Guard(o.AllowPrivate)},
	}
	switch scheme {
	case "nats":
		return natsStream{b}, nil
	case "mqtt":
		return mqttTopic{b}, nil
	}
	return kafkaTopic{b}, nil
}

// broker is what is known of a message broker.
type broker struct {
	address, host  string // with and without the port
	topic          string
	tls            bool
	user, password string
	dialer         *net.Dialer
}
