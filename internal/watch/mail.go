// Mail: one message to one address, by a server that the settings name.

package watch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"understudy"
	"understudy/internal/webhook"
)

// How long a mail may take: each step, and all of it.
const (
	mailStep = 30 * time.Second
	mailTime = 2 * time.Minute
)

// The ways of Mailer.TLS.
const (
	tlsStart = "starttls" // the connection is encrypted before anything is sent, or nothing is
	tlsWhole = "tls"      // from its first byte
	tlsNone  = "none"
)

// Mailer sends mail by an SMTP server (RFC 5321). Safe for concurrent use.
type Mailer struct {
	Server string // HOST:PORT
	From   string // an address, with or without a name
	User   string // "": without a sign-in
	Secret understudy.Secret
	TLS    string // starttls, tls or none; "": none for a server on this machine without a user, else starttls
	// Roots are the certificates that are trusted; nil: those of this machine.
	Roots *tls.Config
}

// Check says what is wrong with the settings.
func (m *Mailer) Check() error {
	host, port, err := net.SplitHostPort(m.Server)
	number, bad := strconv.ParseUint(port, 10, 16)
	from, wrong := mail.ParseAddress(m.From)
	switch {
	case err != nil || bad != nil || host == "" || number == 0:
		return fmt.Errorf("server: %q: write HOST:PORT, as in smtp.example.com:587", understudy.Clip(m.Server))
	case wrong != nil || checkAddress(from.Address) != nil:
		return fmt.Errorf("from: %q is no mail address, such as understudy@example.com", understudy.Clip(m.From))
	case m.TLS != "" && m.TLS != tlsStart && m.TLS != tlsWhole && m.TLS != tlsNone:
		return fmt.Errorf("tls: %q is not known; write %s, %s or %s", understudy.Clip(m.TLS), tlsStart, tlsWhole, tlsNone)
	case m.TLS == tlsNone && m.User != "" && !loopback(host):
		return errors.New("tls: none would send the secret as it is; write starttls or tls")
	}
	return nil
}

// loopback reports whether a server is on this machine.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// refusedError is what a server says of a message that it will never take.
type refusedError struct{ words string }

// Error is the server's words.
func (e *refusedError) Error() string { return e.words }

// letter is a mail.
type letter struct {
	to, subject, text, id string
	at                    time.Time
}

// send sends a mail and returns what the server said. An error is a *refusedError when
// the server answered the message with 5xx; any other may go another time.
func (m *Mailer) send(ctx context.Context, l letter) (said string, err error) {
	ctx, cancel := context.WithTimeout(ctx, mailTime)
	defer cancel()
	message, err := m.message(l)
	if err != nil {
		return "", err
	}
	client, err := m.client(ctx)
	if err != nil {
		return "", err
	}
	connection, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return "", errors.New(webhook.Printable(err.Error()))
	}
	err = client.SendWithSMTPClient(connection, message)
	// A message that was taken is taken, however the connection ends.
	_ = client.CloseWithSMTPClient(connection)
	if message.IsDelivered() {
		return webhook.Printable(message.ServerResponse()), nil
	}
	var failed *gomail.SendError
	if errors.As(err, &failed) {
		words, _, _ := strings.Cut(failed.Error(), ", affected")
		words = webhook.Printable(words)
		if failed.ErrorCode()/100 == 5 {
			return "", &refusedError{words}
		}
		return "", errors.New(words)
	}
	return "", err
}

// message is a mail as it is sent. The library encodes what stands in its headers.
func (m *Mailer) message(l letter) (*gomail.Msg, error) {
	message := gomail.NewMsg(gomail.WithEncoding(gomail.EncodingQP))
	if err := message.From(m.From); err != nil {
		return nil, fmt.Errorf("from: %w", err)
	}
	if err := message.To(l.to); err != nil {
		return nil, &refusedError{"the address cannot be written to"}
	}
	message.Subject(l.subject)
	message.SetDateWithValue(l.at)
	domain := m.From[strings.LastIndexByte(m.From, '@')+1:]
	message.SetMessageIDWithValue(l.id + "@" + strings.TrimSuffix(domain, ">"))
	message.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no one answers it by machine
	message.SetBodyString(gomail.TypeTextPlain, l.text)
	return message, nil
}

// client connects once; the connection ends with ctx.
func (m *Mailer) client(ctx context.Context) (*gomail.Client, error) {
	host, port, err := net.SplitHostPort(m.Server)
	if err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{}
	if m.Roots != nil {
		config = m.Roots.Clone()
	}
	config.ServerName, config.MinVersion = host, tls.VersionTLS12
	policy := gomail.TLSMandatory
	if m.TLS == tlsNone || m.TLS == tlsWhole || m.TLS == "" && m.User == "" && loopback(host) {
		policy = gomail.NoTLS
	}
	options := []gomail.Option{gomail.WithPort(number), gomail.WithTimeout(mailStep), gomail.WithTLSPolicy(policy),
		gomail.WithTLSConfig(config), gomail.WithDialContextFunc(m.dial(ctx, config))}
	if m.TLS == tlsWhole {
		options = append(options, gomail.WithSSL())
	}
	if m.User != "" {
		options = append(options, gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover), gomail.WithUsername(m.User),
			gomail.WithPassword(m.Secret.Reveal()))
	}
	return gomail.NewClient(host, options...)
}

// dial connects. The library bounds each step; the connection ends with whole, too.
func (m *Mailer) dial(whole context.Context, config *tls.Config) gomail.DialContextFunc {
	return func(ctx context.Context, network, address string) (c net.Conn, err error) {
		dialer := &net.Dialer{Timeout: mailStep}
		if m.TLS == tlsWhole {
			c, err = (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, network, address)
		} else {
			c, err = dialer.DialContext(ctx, network, address)
		}
		if err == nil {
			context.AfterFunc(whole, func() { _ = c.Close() })
		}
		return c, err
	}
}
