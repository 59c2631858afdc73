// This file sends notifications to devices through Apple's push service (APNs).

package push

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"understudy"
	"understudy/internal/webhook"
	"understudy/kit/lockwatch"
)

// appleServer is the address of APNs for apps from the App Store and from TestFlight.
const appleServer = "https://api.push.apple.com"

// tokenLifetime is how long a provider token is used. Apple refuses a token that is older than an hour, and a new one less than
// 20 minutes after the last one ("Establishing a token-based connection to APNs").
const tokenLifetime = 40 * time.Minute

// Limits of the connection to APNs. A connection on which nothing arrives, not even the answer to a PING (RFC 9113, 6.7), is
// noticed after silence and pingTimeout, 25 seconds together.
const (
	silence     = 15 * time.Second // the time without a frame after which a PING is sent
	pingTimeout = 10 * time.Second
	pushTimeout = time.Minute // the time limit of a push with its retry
	dialTimeout = 10 * time.Second
	lifetime    = 24 * time.Hour // how long a push service keeps a notification for a receiver that cannot be reached
)

// APNsOptions are the settings of a client of APNs.
type APNsOptions struct {
	Server string // the address of APNs; "" means the server for released apps
	Team   string // the id of the team in Apple's developer programme
	KeyID  string // the id of the key
	Topic  string // the bundle id of the app that receives the notifications
	Key    understudy.Secret
	Now    func() time.Time
	// TLS is the configuration of TLS. nil means the trusted certificates of this machine.
	TLS *tls.Config
	// Silence and PingTimeout replace 15 and 10 seconds, after which a connection that has died is noticed. 0 means the default.
	Silence, PingTimeout time.Duration
}

// Check returns an error if an option is wrong. It does not check the key.
func (o *APNsOptions) Check() error {
	u, err := url.Parse(o.Server)
	switch {
	case o.Server != "" && (err != nil || u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != ""):
		return errors.New("server: write https://HOST, such as https://api.sandbox.push.apple.com")
	case len(o.Team) != 10 || len(o.KeyID) != 10:
		return errors.New("team and key_id each have 10 characters; Apple shows them with the key")
	case o.Topic == "" || strings.ContainsAny(o.Topic, " /"):
		return errors.New("topic: write the bundle id of the app, such as com.example.desk")
	}
	return nil
}

// APNs sends notifications to Apple's devices. It is safe for concurrent use and uses one connection, which it opens with
// the first push and again after the connection is lost.
//
// Apple asks clients to send :path and authorization without adding them to the header table of HPACK (RFC 7541), and to add
// apns-id, apns-expiration and apns-collapse-id once. The encoder of net/http does not decide by name. The client therefore
// gives its encoder no table at all: :path and authorization are sent as Apple asks, and the table of the server cannot
// overflow. The names of the other fields cost some bytes in each request.
type APNs struct {
	o      APNsOptions
	key    *ecdsa.PrivateKey
	client *http.Client

	mu     lockwatch.Mutex
	token  string // the provider token in use
	issued time.Time
}

// NewAPNs returns a client of APNs. It does not connect. It returns an error if an option or the key is wrong.
func NewAPNs(o APNsOptions) (*APNs, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	key, err := readKey(o.Key)
	if err != nil {
		return nil, err
	}
	understudy.SetDefaults(nil, &o.Now)
	o.Server, o.Silence, o.PingTimeout = cmp.Or(o.Server, appleServer), cmp.Or(o.Silence, silence), cmp.Or(o.PingTimeout, pingTimeout)
	var protocols http.Protocols
	protocols.SetHTTP2(true)
	transport := &http.Transport{
		DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext, TLSClientConfig: o.TLS, TLSHandshakeTimeout: dialTimeout,
		Protocols: &protocols, DisableCompression: true, MaxConnsPerHost: 1, IdleConnTimeout: time.Hour,
		HTTP2: &http.HTTP2Config{SendPingTimeout: o.Silence, PingTimeout: o.PingTimeout, StrictMaxConcurrentRequests: true,
			MaxEncoderHeaderTableSize: 1},
	}
	return &APNs{o: o, key: key, client: &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// Close closes the connection if it is idle.
func (a *APNs) Close() { a.client.CloseIdleConnections() }

// makeToken returns the token that identifies the sender. It signs a new token when the last one is 40 minutes old.
func (a *APNs) makeToken() (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.o.Now()
	if age := now.Sub(a.issued); a.token != "" && age >= 0 && age < tokenLifetime {
		return a.token, nil
	}
	token, err := signToken(a.key, a.o.KeyID, map[string]any{"iss": a.o.Team, "iat": now.Unix()})
	if err == nil {
		a.token, a.issued = token, now
	}
	return token, err
}

// Push sends a notification to a device. id is a UUID; APNs answers a second request with the same id as the first. A newer
// notification with the same collapse id, of at most 64 bytes, replaces an older one. If the connection is lost before
// the answer, Push sends the request once more, with the same id over a new connection. It returns nil after the answer 200.
// The error is a *refusal for any other answer.
func (a *APNs) Push(ctx context.Context, device, id, collapse string, payload []byte) error {
	ctx, cancel := context.WithTimeout(ctx, pushTimeout)
	defer cancel()
	token, err := a.makeToken()
	if err != nil {
		return err
	}
	header := http.Header{"Authorization": {"bearer " + token}, "Content-Type": {"application/json"}, "User-Agent": {"understudy"},
		"Apns-Id": {id}, "Apns-Topic": {a.o.Topic}, "Apns-Push-Type": {"alert"}, "Apns-Priority": {"10"},
		"Apns-Expiration": {strconv.FormatInt(a.o.Now().Add(lifetime).Unix(), 10)}}
	if collapse != "" {
		header.Set("Apns-Collapse-Id", collapse)
	}
	address := a.o.Server + "/3/device/" + device
	answer, err := webhook.Post(ctx, a.client, address, header, payload)
	if err != nil && answer.Status == 0 && ctx.Err() == nil {
		answer, err = webhook.Post(ctx, a.client, address, header, payload)
	}
	gone := strings.Contains(answer.Text, "BadDeviceToken") || strings.Contains(answer.Text, "DeviceTokenNotForTopic")
	return newRefusal(answer, gone, err)
}

// refusal is an answer of a push service other than success.
type refusal struct {
	answer webhook.Answer
	isGone bool // whether the receiver no longer exists
}

// newRefusal returns the error of a push service's answer. It returns err if there was no answer, and nil after a success.
func newRefusal(answer webhook.Answer, gone bool, err error) error {
	if err == nil || answer.Status == 0 {
		return err
	}
	return &refusal{answer, gone || answer.IsGone()}
}

// Error returns the status and the beginning of the answer.
func (r *refusal) Error() string {
	return strings.TrimSpace(fmt.Sprintf("the push service answered %d %s", r.answer.Status, r.answer.Text))
}

// signToken returns a JSON Web Token (RFC 7519) signed with ES256 (RFC 7518, 3.4). id is the id of the key; "" means none.
func signToken(key *ecdsa.PrivateKey, id string, claims map[string]any) (string, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: id}},
		(&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", errors.New("the private key cannot sign")
	}
	return jwt.Signed(signer).Claims(claims).Serialize()
}

// readKey parses a private key of the curve P-256 in PEM, as PKCS #8. Its errors contain no part of the key.
func readKey(secret understudy.Secret) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode([]byte(secret.Reveal()))
	if block == nil {
		return nil, errors.New("key: it is not a private key in PEM; use the .p8 file of Apple as it is")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(*ecdsa.PrivateKey)
	if err != nil || !ok || key.Params().BitSize != 256 {
		return nil, errors.New("key: it is not a PKCS #8 key of the curve P-256; use the .p8 file of Apple as it is")
	}
	return key, nil
}
