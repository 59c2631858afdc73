// This file encrypts notifications for browsers, and sends them through the push services of the browsers (Web Push).

package push

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy/internal/webhook"
)

// Sizes of an encrypted notification in bytes (RFC 8188 and RFC 8291).
const (
	saltBytes     = 16
	secretBytes   = 16 // the authentication secret of a subscription
	pointBytes    = 65 // an uncompressed point of P-256
	recordBytes   = 4096
	maxPlainBytes = 3993 // the content of one record: 4096 - 86 (header) - 16 (tag) - 1 (delimiter)
)

// services are the hosts of the push services of Chrome, Firefox, Safari and Edge. A name that begins with a dot
// permits all hosts below it.
var services = []string{"fcm.googleapis.com", "updates.push.services.mozilla.com", ".push.apple.com", ".notify.windows.com"}

// encodeBase64 encodes bytes as base64url without padding (RFC 4648, 5).
var encodeBase64 = base64.RawURLEncoding.EncodeToString

// errSubscription is the error for keys of a subscription that no browser made.
var errSubscription = errors.New("the keys of the subscription are not valid; switch notifications on again")

// seal encrypts a notification for a subscription of at most maxPlainBytes as one record of aes128gcm (RFC 8291, 3.4). p256dh
// and secret are the keys of the subscription in base64url.
func seal(plain []byte, p256dh, secret string) ([]byte, error) {
	point, err := base64.RawURLEncoding.DecodeString(p256dh)
	auth, err2 := base64.RawURLEncoding.DecodeString(secret)
	browser, err3 := ecdh.P256().NewPublicKey(point)
	if errors.Join(err, err2, err3) != nil || len(auth) != secretBytes {
		return nil, errSubscription
	}
	own, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	shared, err := own.ECDH(browser)
	if err != nil {
		return nil, errSubscription
	}
	public, salt := own.PublicKey().Bytes(), make([]byte, saltBytes)
	_, _ = rand.Read(salt) // rand.Read never fails
	input, err := hkdf.Key(sha256.New, shared, auth, "WebPush: info\x00"+string(browser.Bytes())+string(public), 32)
	key, err2 := hkdf.Key(sha256.New, input, salt, "Content-Encoding: aes128gcm\x00", 16)
	nonce, err3 := hkdf.Key(sha256.New, input, salt, "Content-Encoding: nonce\x00", 12)
	block, err4 := aes.NewCipher(key)
	if err := errors.Join(err, err2, err3, err4); err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	body := append(binary.BigEndian.AppendUint32(salt, recordBytes), pointBytes)
	body = append(body, public...)
	return aead.Seal(body, nonce, append(slices.Clip(plain), 2), nil), nil // 2 marks the last record
}

// checkEndpoint returns an error if a subscription's address is not permitted. Subscriptions come from browsers and are
// not trusted.
func (p *Policy) checkEndpoint(address string) error {
	if p.Contact == "" {
		return errNoBrowsers
	}
	if len(address) > maxEndpointBytes {
		return errors.New("the address of the push service is too long")
	}
	if err := webhook.CheckURL(address, p.AllowPrivate); err != nil {
		return err
	}
	u, err := url.Parse(address)
	permitted := p.Hosts
	if len(permitted) == 0 {
		permitted = services
	}
	for _, host := range permitted {
		if err == nil && (u.Host == host || host[0] == '.' && strings.HasSuffix(u.Host, host)) {
			return nil
		}
	}
	return errors.New("the settings do not permit this browser's push service; an administrator can add its host to push.hosts: " + u.Host)
}

// webTokenLifetime is how long a token for a push service is valid. RFC 8292 permits at most 24 hours.
const webTokenLifetime = 12 * time.Hour

// sendWeb sends a notification to a browser (RFC 8030). A newer notification with the same topic replaces an older one that
// was not delivered yet.
func (b *Book) sendWeb(ctx context.Context, p *Policy, r *Receiver, topic string, plain []byte) error {
	if err := p.checkEndpoint(r.Endpoint); err != nil {
		return err
	}
	body, err := seal(plain, r.P256dh, r.Auth)
	if err != nil {
		return err
	}
	u, err := url.Parse(r.Endpoint)
	if err != nil {
		return err
	}
	token, err := signToken(b.key, "", map[string]any{"aud": u.Scheme + "://" + u.Host, "exp": b.now().Add(webTokenLifetime).Unix(),
		"sub": p.Contact})
	if err != nil {
		return err
	}
	header := http.Header{"Authorization": {"vapid t=" + token + ", k=" + b.public}, "Content-Encoding": {"aes128gcm"},
		"Content-Type": {"application/octet-stream"}, "Ttl": {strconv.Itoa(int(lifetime / time.Second))}, "Urgency": {"high"}}
	if topic != "" {
		header.Set("Topic", topic)
	}
	answer, err := webhook.Post(ctx, p.client, r.Endpoint, header, body)
	return newRefusal(answer, answer.Status == http.StatusNotFound, err)
}
