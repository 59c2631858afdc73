// This file keeps the browsers and devices of people, and sends notifications to all of a person's.

// Package push sends notifications to the browsers (Web Push) and devices (APNs) of people. What a notification says comes
// from its sender, which has passed it through the gate as the person.
package push

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/internal/jsonapi"
	"understudy/internal/webhook"
	"understudy/kit/lockwatch"
)

// Limits of receivers.
const (
	maxReceivers     = 10 // the maximum number of receivers of one person
	maxSent          = 8  // the number of accepted notifications of a receiver that are remembered
	maxEndpointBytes = 500
	maxDeviceBytes   = 100 // the maximum length of a device token in bytes; Apple's have 32 today
	failTime         = time.Hour
	ownerInterval    = time.Hour // the time after which the stored time of an owner's last request is updated
)

// Receiver is a browser or a device that receives the notifications of a person. It has an Endpoint or a Device.
type Receiver struct {
	ID    string           `json:"id"`   // a hash of the address
	Name  string           `json:"name"` // what the person calls it
	Made  time.Time        `json:"made"`
	Owner understudy.Owner `json:"owner"` // the person, as of the last request that CheckOwners has stored

	// Endpoint, P256dh and Auth are the subscription of a browser (RFC 8291, 3.2).
	Endpoint string `json:"endpoint,omitempty"`
	P256dh   string `json:"p256dh,omitempty"`
	Auth     string `json:"auth,omitempty"`
	Device   string `json:"device,omitempty"` // the device token of APNs, in hexadecimal digits

	Outages bool      `json:"outages,omitempty"` // whether it receives notices of outages
	Sent    []string  `json:"sent,omitempty"`    // the ids of the last notifications that were accepted, at most maxSent
	Failing time.Time `json:"failing,omitzero"`  // when sending began to fail; zero after a success
}

// Message is a notification.
type Message struct {
	ID          string // the same at every try
	Title, Body string
	URL         string // the page that a tap opens; "" means none
	Tag         string // a newer notification with the same tag replaces an older one; at most 32 characters of base64url
}

// Policy contains the current settings. It is immutable; SetPolicy replaces it.
type Policy struct {
	Contact      string   // the mailto: or https: address at which push services reach the operator; "" means no Web Push
	Hosts        []string // the permitted hosts of push services; none means those of the common browsers
	AllowPrivate bool     // whether http, private networks and this machine are permitted
	APNs         *APNs    // nil means that no device can receive notifications
	Owners       Owners   // must be set before CheckOwners, NoteOwner and Outages.Run
	URL          string   // the viewer's address for people, which notices of outages open

	CanSee func(c understudy.Caller, source string) bool // whether a caller may see anything of a source
	client *http.Client                                  // sends to browsers
}

// Owners finds the owners of receivers and returns their current rights. callers.Book implements it.
type Owners interface {
	Owner(c understudy.Caller) understudy.Owner
	Resolve(o understudy.Owner) (now understudy.Caller, ok bool)
}

// Book contains the receivers of all people, in the KV store. It is safe for concurrent use.
type Book struct {
	kv     understudy.KV
	now    func() time.Time
	key    *ecdsa.PrivateKey
	public string // the public key, in base64url
	policy atomic.Pointer[Policy]

	mu   lockwatch.Mutex
	seen map[[2]string]understudy.Owner // the owners of receivers as of their last request, by source and name
}

// Open returns the receivers of a store. The first call creates the key that identifies this server to push services. No
// notification can be sent before SetPolicy.
func Open(ctx context.Context, kv understudy.KV, now func() time.Time) (*Book, error) {
	seed, err := jsonapi.LoadSealingKey(ctx, kv, "push")
	if err != nil {
		return nil, err
	}
	b := &Book{kv: kv, now: now, seen: map[[2]string]understudy.Owner{}}
	for b.key == nil {
		if b.key, err = ecdsa.ParseRawPrivateKey(elliptic.P256(), seed); err != nil {
			sum := sha256.Sum256(seed) // one seed in 2^32 is not below the order of the curve
			seed = sum[:]
		}
	}
	public, err := b.key.PublicKey.Bytes()
	b.public = encodeBase64(public)
	b.policy.Store(&Policy{})
	return b, err
}

// SetPolicy replaces the settings.
func (b *Book) SetPolicy(p Policy) {
	p.client = webhook.NewClient(webhook.Guard(p.AllowPrivate), 0)
	if old := b.policy.Swap(&p); old.APNs != nil {
		old.APNs.Close()
	}
}

// HasDevices reports whether the settings permit notifications to devices.
func (b *Book) HasDevices() bool { return b.policy.Load().APNs != nil }

// PublicKey returns the key that a browser needs for a subscription (RFC 8292, 4), in base64url. It returns "" if the settings
// permit no notifications to browsers.
func (b *Book) PublicKey() string {
	if b.policy.Load().Contact == "" {
		return ""
	}
	return b.public
}

// storePrefix returns the beginning of the keys under which the receivers of a person are stored.
func storePrefix(of understudy.Owner) string {
	return receiverPrefix + hashText(of.Source+"\x00"+of.Name) + "/"
}

// receiverPrefix is the beginning of the keys under which all receivers are stored.
const receiverPrefix = "receiver/"

func hashText(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:10])
}

// Add stores a browser or a device of a person. It returns ErrInvalid or ErrNotStored.
func (b *Book) Add(ctx context.Context, of understudy.Owner, r Receiver) error {
	if err := b.check(&r); err != nil {
		return fmt.Errorf("push: %w: %w", understudy.ErrInvalid, err)
	}
	own, err := b.List(ctx, of)
	if err != nil {
		return err
	}
	r.ID, r.Made, r.Owner, r.Sent, r.Failing = hashText(r.Endpoint+"\x00"+r.Device), b.now().UTC(), of, nil, time.Time{}
	if len(own) >= maxReceivers && !slices.ContainsFunc(own, func(o Receiver) bool { return o.ID == r.ID }) {
		return fmt.Errorf("push: %w: you have %d browsers and devices; switch one off first", understudy.ErrInvalid, len(own))
	}
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.seen[[2]string{of.Source, of.Name}] = of
	b.mu.Unlock()
	return b.kv.SetValue(ctx, storePrefix(of)+r.ID, value)
}

// check returns what is wrong with a new receiver, and writes its parts in one form.
func (b *Book) check(r *Receiver) error {
	p := b.policy.Load()
	r.Name = cmp.Or(webhook.Printable(r.Name), "Unnamed")
	if r.Device == "" {
		if _, err := seal(nil, r.P256dh, r.Auth); err != nil {
			return err
		}
		return p.checkEndpoint(r.Endpoint)
	}
	token, err := hex.DecodeString(r.Device)
	switch {
	case p.APNs == nil:
		return errNoDevices
	case err != nil || len(token) < 16 || len(token) > maxDeviceBytes || r.Endpoint != "":
		return errors.New("a device token is written in hexadecimal digits; copy it from the app")
	}
	r.Device = hex.EncodeToString(token)
	return nil
}

// Remove removes a receiver of a person. It returns ErrNotFound if the person has no such receiver, or ErrNotStored.
func (b *Book) Remove(ctx context.Context, of understudy.Owner, id string) error {
	return b.kv.Change(ctx, storePrefix(of)+id, func(old []byte) ([]byte, error) {
		if old == nil {
			return nil, fmt.Errorf("push: %w: you have no such receiver", understudy.ErrNotFound)
		}
		return nil, nil
	})
}

// List returns the receivers of a person, the newest first. Only the name and the source of the person count.
func (b *Book) List(ctx context.Context, of understudy.Owner) (all []Receiver, err error) {
	values, err := b.kv.ReadValues(ctx, storePrefix(of))
	for _, value := range values {
		var r Receiver
		if json.Unmarshal(value, &r) == nil {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(x, y Receiver) int { return cmp.Or(y.Made.Compare(x.Made), strings.Compare(x.ID, y.ID)) })
	return all, err
}

// Owner returns a caller in the form in which Book stores it.
func (b *Book) Owner(c understudy.Caller) understudy.Owner { return b.policy.Load().Owners.Owner(c) }

// NoteOwner notes that a person made a request. It returns quickly and does not use the store.
func (b *Book) NoteOwner(c understudy.Caller) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o, has := b.seen[[2]string{c.Source, c.Name}]
	isDue := b.now().Sub(o.LastSeen) >= ownerInterval || o.Role != c.Role()
	if has && isDue && c.Grant.IssuedBy != understudy.IssuedByViewAs {
		b.seen[[2]string{c.Source, c.Name}] = b.Owner(c)
	}
}

// CheckOwners removes the receivers of people who no longer have access, as watches of such people stop. For other
// people it stores the last request, which NoteOwner has noted.
func (b *Book) CheckOwners(ctx context.Context) error {
	values, err := b.kv.ReadValues(ctx, receiverPrefix)
	for name, value := range values {
		var r Receiver
		_ = json.Unmarshal(value, &r) // a value that cannot be read has no owner
		key, stored := [2]string{r.Owner.Source, r.Owner.Name}, r.Owner
		b.mu.Lock()
		if !b.seen[key].LastSeen.After(stored.LastSeen) {
			b.seen[key] = stored
		}
		o := b.seen[key]
		b.mu.Unlock()
		_, ok := b.policy.Load().Owners.Resolve(o)
		if ok && o.LastSeen.Equal(stored.LastSeen) {
			continue
		}
		err = errors.Join(err, b.kv.Change(ctx, name, func(old []byte) ([]byte, error) {
			if r = (Receiver{}); !ok || json.Unmarshal(old, &r) != nil {
				return nil, nil
			}
			r.Owner = o
			return json.Marshal(r)
		}))
	}
	return err
}

// The errors of a person without a receiver, and of settings that permit none.
var (
	errNone       = errors.New("no browser and no device receives notifications; switch them on under Notifications")
	errNoBrowsers = errors.New("this server sends no notifications to browsers; an administrator can set push.contact")
	errNoDevices  = errors.New("this server sends no notifications to devices; an administrator can set push.apns")
)

// Send sends a notification to receivers, and returns what was done in words. After an error the caller sends the same message
// to what List then returns; receivers that have it are left out. wait is the pause that a push service requests.
// A receiver that no longer exists is removed. One that has failed for an hour delays no notification that others accept.
func (b *Book) Send(ctx context.Context, all []Receiver, m Message) (said string, wait time.Duration, err error) {
	p, sent := b.policy.Load(), 0
	var errs, late []error
	for _, r := range all {
		err := error(nil)
		if !slices.Contains(r.Sent, m.ID) {
			err = b.sendTo(ctx, p, &r, m)
		}
		if ctx.Err() != nil {
			return "", 0, ctx.Err()
		}
		why, _ := errors.AsType[*refusal](err)
		if why != nil {
			wait = max(wait, why.answer.Wait)
		}
		gone := why != nil && why.isGone
		switch {
		case err == nil:
			sent++
		case gone || !r.Failing.IsZero() && b.now().Sub(r.Failing) >= failTime:
			late = append(late, err)
		default:
			errs = append(errs, err)
		}
		if err := b.note(ctx, storePrefix(r.Owner)+r.ID, &r, m.ID, err, gone); err != nil {
			return "", 0, err
		}
	}
	if sent == 0 {
		errs = append(append(errs, late...), errNone)
	}
	if len(errs) > 0 {
		return "", wait, errs[0]
	}
	return fmt.Sprintf("accepted for %d", sent), 0, nil
}

// sendTo sends a notification to one receiver.
func (b *Book) sendTo(ctx context.Context, p *Policy, r *Receiver, m Message) error {
	if r.Device == "" {
		return b.sendWeb(ctx, p, r, m.Tag, m.encode(maxPlainBytes))
	}
	if p.APNs == nil {
		return errNoDevices
	}
	sum := sha256.Sum256([]byte(m.ID + "\x00" + r.ID))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // version 8, for values of an application's own (RFC 9562, 5.8)
	id := fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
	return p.APNs.Push(ctx, r.Device, id, m.Tag, m.encode(maxPlainBytes))
}

// note stores the result of a try with a receiver, which is removed if it is gone.
func (b *Book) note(ctx context.Context, key string, r *Receiver, id string, result error, gone bool) error {
	if result == nil && slices.Contains(r.Sent, id) || result != nil && !gone && !r.Failing.IsZero() {
		return nil
	}
	return b.kv.Change(ctx, key, func(old []byte) ([]byte, error) {
		var now Receiver
		if old == nil || json.Unmarshal(old, &now) != nil || !now.Made.Equal(r.Made) {
			return old, nil // the receiver was removed or added again meanwhile
		}
		if gone {
			return nil, nil
		}
		if now.Failing = b.now().UTC(); result == nil {
			now.Sent, now.Failing = append(now.Sent[max(len(now.Sent)-maxSent+1, 0):], id), time.Time{}
		}
		return json.Marshal(now)
	})
}

// encode returns a notification as JSON of at most limit bytes, in the format of APNs. It shortens the body if it must.
func (m Message) encode(limit int) []byte {
	for {
		var out bytes.Buffer
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(map[string]any{"url": m.URL, "aps": map[string]any{ // strings can always be encoded
			"alert": map[string]string{"title": m.Title, "body": m.Body}, "sound": "default", "thread-id": m.Tag}})
		switch {
		case out.Len() <= limit:
			return bytes.TrimSpace(out.Bytes())
		case m.Body != "":
			m.Body = strings.ToValidUTF8(m.Body[:len(m.Body)/2], "")
		default:
			m.Title, m.URL = "Understudy", ""
		}
	}
}
