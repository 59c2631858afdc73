// This file sends one mail to one address through the SMTP server of the settings.

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

// The time limits for one step of sending a mail and for the whole mail.
const (
	mailStepTimeout = 30 * time.Second
	mailTimeout     = 2 * time.Minute
)

// The values of Mailer.TLS.
const (
	tlsStart  = "starttls" // the connection is upgraded by STARTTLS; if it cannot be, sending fails
	tlsDirect = "tls"      // the connection uses TLS from the first byte
	tlsNone   = "none"
)

// Mailer sends mail through an SMTP server (RFC 5321). It is safe for concurrent use.
type Mailer struct {
	Server string // the server's address, HOST:PORT
	From   string // the sender's mail address, with or without a name
	User   string // the user name for the mail server; "" means no authentication
	Secret understudy.Secret
	TLS    string // the TLS mode: starttls, tls or none; "" means none for a server on this machine without a user, else starttls
	// Roots are the trusted certificates. nil means the trusted certificates of this machine.
	Roots *tls.Config
}

// Check returns an error if the settings of the mail server are wrong.
func (m *Mailer) Check() error {
	host, port, err := net.SplitHostPort(m.Server)
	number, bad := strconv.ParseUint(port, 10, 16)
	from, wrong := mail.ParseAddress(m.From)
	switch {
	case err != nil || bad != nil || host == "" || number == 0:
		return fmt.Errorf("server: %q: write HOST:PORT, as in smtp.example.com:587", understudy.Clip(m.Server))
	case wrong != nil || checkAddress(from.Address) != nil:
		return fmt.Errorf("from: %q is not a mail address; write it like understudy@example.com", understudy.Clip(m.From))
	case m.TLS != "" && m.TLS != tlsStart && m.TLS != tlsDirect && m.TLS != tlsNone:
		return fmt.Errorf("tls: %q is not known; write %s, %s or %s", understudy.Clip(m.TLS), tlsStart, tlsDirect, tlsNone)
	case m.TLS == tlsNone && m.User != "" && !isLoopback(host):
		return errors.New("tls: none would send the secret unencrypted; write starttls or tls")
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// refusedError is the answer of a server that will never accept the message.
type refusedError struct{ words string }

// Error returns the answer of the server.
func (e *refusedError) Error() string { return e.words }

// letter is a mail to one address.
type letter struct {
	to, subject, text, id string
	at                    time.Time
}

// send sends a mail and returns the server's answer. The error is a *refusedError if the server refused the message
// with a 5xx code. After any other error the caller may try again.
func (m *Mailer) send(ctx context.Context, l letter) (said string, err error) {
	ctx, cancel := context.WithTimeout(ctx, mailTimeout)
	defer cancel()
	message, err := m.newMessage(l)
	if err != nil {
		return "", err
	}
	client, err := m.newClient(ctx)
	if err != nil {
		return "", err
	}
	connection, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return "", errors.New(webhook.Printable(err.Error()))
	}
	err = client.SendWithSMTPClient(connection, message)
	// The message counts as sent even if closing the connection fails.
	_ = client.CloseWithSMTPClient(connection)
	if message.IsDelivered() {
		return webhook.Printable(message.ServerResponse()), nil
	}
	if failed, ok := errors.AsType[*gomail.SendError](err); ok {
		words, _, _ := strings.Cut(failed.Error(), ", affected")
		words = webhook.Printable(words)
		if failed.ErrorCode()/100 == 5 {
			return "", &refusedError{words}
		}
		return "", errors.New(words)
	}
	return "", err
}

// newMessage returns a mail for the mail library, which encodes the headers.
func (m *Mailer) newMessage(l letter) (*gomail.Msg, error) {
	message := gomail.NewMsg(gomail.WithEncoding(gomail.EncodingQP))
	if err := message.From(m.From); err != nil {
		return nil, fmt.Errorf("from: %w", err)
	}
	if err := message.To(l.to); err != nil {
		return nil, &refusedError{"the address is not valid"}
	}
	message.Subject(l.subject)
	message.SetDateWithValue(l.at)
	domain := m.From[strings.LastIndexByte(m.From, '@')+1:]
	message.SetMessageIDWithValue(l.id + "@" + strings.TrimSuffix(domain, ">"))
	message.SetGenHeader("Auto-Submitted", "auto-generated") // the header prevents automatic replies (RFC 3834)
	message.SetBodyString(gomail.TypeTextPlain, l.text)
	return message, nil
}

// newClient returns a client for one connection, which ends with ctx.
func (m *Mailer) newClient(ctx context.Context) (*gomail.Client, error) {
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
	if m.TLS == tlsNone || m.TLS == tlsDirect || m.TLS == "" && m.User == "" && isLoopback(host) {
		policy = gomail.NoTLS
	}
	options := []gomail.Option{gomail.WithPort(number), gomail.WithTimeout(mailStepTimeout), gomail.WithTLSPolicy(policy),
		gomail.WithTLSConfig(config), gomail.WithDialContextFunc(m.dial(ctx, config))}
	if m.TLS == tlsDirect {
		options = append(options, gomail.WithSSL())
	}
	if m.User != "" {
		options = append(options, gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover), gomail.WithUsername(m.User),
			gomail.WithPassword(m.Secret.Reveal()))
	}
	return gomail.NewClient(host, options...)
}

// dial returns a function that connects to the server. The mail library limits the time of each step. The
// connection also ends when the context whole ends.
func (m *Mailer) dial(whole context.Context, config *tls.Config) gomail.DialContextFunc {
	return func(ctx context.Context, network, address string) (c net.Conn, err error) {
		dialer := &net.Dialer{Timeout: mailStepTimeout}
		if m.TLS == tlsDirect {
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
