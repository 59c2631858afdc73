// The audio or image of a record as a page offers it. Nothing is fetched until a person asks for it.

package page

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/viewer/plan"
	"understudy/spec"
)

const (
	mediaPrefix   = ControlPrefix + "media/"
	SessionCookie = "understudy_session"
	// A content keeps its address during one bucket of time. The address works until the end of the next bucket, so
	// for 15 to 30 minutes. A browser that finds the content on several pages therefore fetches it once.
	MediaBucket = 15 * time.Minute
	MaxToken    = 2 * spec.MaxKey
)

// player is the content of a record, for one caller.
type player struct {
	Hidden bool   // the caller may not have the content
	Name   string // the name of the content, such as "Recording RE12…"
	Audio  string // the address to play; empty if the content is no audio
	Image  string
	Files  []Link // links to download the content
}

// Contents returns the player of a record's content. It returns nil if the kind has none, or if contents are not
// served.
func (q *Exchange) Contents(k *plan.Kind, row access.Row, vars understudy.Query) *player {
	if len(k.Spec.Media) == 0 || row.ID == "" || q.V.Options.Media == nil {
		return nil
	}
	p := &player{Name: plan.UpperFirst(k.Spec.Singular) + " " + ShortID(row.ID)}
	for _, m := range k.Spec.Media {
		t := mediaTarget(k, m, row, vars)
		if t == nil {
			continue
		}
		url := MediaURL(q, t)
		if url == "" {
			p.Hidden = true
			continue
		}
		offer(p, m, row, url)
	}
	if p.Audio == "" && p.Image == "" && len(p.Files) == 0 && !p.Hidden {
		return nil
	}
	return p
}

// offer adds one address of a content, by its type as audio or image, and as a file to download. An address without
// a file extension is offered for download only if there is no other.
func offer(p *player, m *spec.Media, row access.Row, url string) {
	switch kind := mediaType(m, row); {
	case strings.HasPrefix(kind, "audio/") && p.Audio == "":
		p.Audio = url
	case strings.HasPrefix(kind, "image/") && p.Image == "":
		p.Image = url
	}
	if ext := path.Ext(m.Path); ext != "" && !strings.Contains(ext, "}") {
		p.Files = append(p.Files, Link{Href: url, Text: strings.ToUpper(ext[1:])})
	} else if len(p.Files) == 0 {
		p.Files = append(p.Files, Link{Href: url, Text: "Download"})
	}
}

// mediaType returns the likely type of a content: the value of a field if the path allows that type, else the first
// type that the path allows.
func mediaType(m *spec.Media, row access.Row) string {
	for _, v := range row.Fields() {
		if v.State == access.Seen && slices.ContainsFunc(m.Types,
			func(t string) bool { return t == v.Text || strings.HasSuffix(t, "/") && strings.HasPrefix(v.Text, t) }) {
			return v.Text
		}
	}
	if len(m.Types) > 0 {
		return m.Types[0]
	}
	return ""
}

// mediaTarget returns the target of a record's content. It returns nil if neither the record nor the page has all
// path variables.
func mediaTarget(k *plan.Kind, m *spec.Media, row access.Row, vars understudy.Query) *spec.Target {
	parts := strings.Split(row.ID, spec.IDSeparator)
	at, ok := m.Template().FillEscaped(func(name string) (string, bool) {
		if i := slices.Index(m.ID, name); i >= 0 && i < len(parts) {
			return parts[i], true
		}
		if v, ok := k.Source.PathVar(vars, name); ok {
			return v, true
		}
		field := k.FieldOf(k.Source.ParentOf(m.Template(), []string{name}))
		if field == "" {
			return "", false
		}
		v := row.Field(field)
		return v.Text, v.State == access.Seen
	})
	if !ok {
		return nil
	}
	t, err := k.Source.Spec.Resolve(k.Source.Name, at, "")
	if err != nil || t.Media != m {
		return nil
	}
	return t
}

// draw writes the player, the button that shows an image, and the downloads.
func (p *player) draw(b *strings.Builder) {
	if p.Hidden {
		b.WriteString(`<span class="hidden" title="Your role can't see this">hidden</span>`)
		return
	}
	b.WriteString(`<div class="media">`)
	if p.Audio != "" {
		b.WriteString(`<audio controls preload="none"`)
		writeAttribute(b, "src", p.Audio)
		writeAttribute(b, "aria-label", p.Name)
		b.WriteString("></audio>")
	}
	if p.Image != "" {
		b.WriteString(`<a class="button"`)
		writeAttribute(b, "href", p.Image)
		writeAttribute(b, "data-image", p.Name)
		b.WriteString(">Show image</a>")
	}
	for _, f := range p.Files {
		b.WriteString(`<a download`)
		writeAttribute(b, "href", f.Href)
		writeAttribute(b, "aria-label", p.Name+": "+f.Text)
		b.WriteByte('>')
		escape(b, f.Text)
		b.WriteString("</a>")
	}
	b.WriteString("</div>")
}

// MediaURL returns the address of a content for this caller's browser, or "" if the caller may not have it. The
// address works only in this session, for this caller, for at most half an hour. The first address of a session
// sets the session cookie. A record's page that is sent in pieces has set it before (startStream).
func MediaURL(q *Exchange, t *spec.Target) string {
	if q.V.Options.Media == nil || q.Rights.Gate.CheckMedia(q.Rights.Caller, t) != nil {
		return ""
	}
	q.Reply.openSession()
	return mediaPrefix + q.V.Options.Seals.Seal(q.Reply.session, q.Rights.Caller.Name, t.Key, BucketOf(q.V.Options.Now()))
}

// openSession sets the browser's session. A browser without one gets a new session by a cookie. It must run on the
// page's goroutine.
func (y *Reply) openSession() {
	if y.session.IsZero() {
		y.session = SessionOf(y.r)
	}
	if !y.session.IsZero() {
		return
	}
	_, _ = rand.Read(y.session.Raw[:]) // crypto/rand never fails
	http.SetCookie(y.W, &http.Cookie{
		Name: SessionCookie, Value: y.session.ShortString(), Path: "/", HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Secure: strings.HasPrefix(y.v.Options.PublicURL, "https:"),
	})
}

// SealNumber returns the token of a number that the caller looks up. It works only in this session, for this caller
// and role, for at most half an hour. The tokens of all numbers have the same length.
func SealNumber(q *Exchange, number string) string {
	q.Reply.openSession()
	key := understudy.Key{URI: fmt.Sprintf("%-*s", understudy.MaxPhoneDigits+len("+"), number)}
	return q.V.Options.Seals.Seal(q.Reply.session, lookupCaller(q.Rights.Caller), key, BucketOf(q.V.Options.Now()))
}

// OpenNumber returns the number of a token. ok is false if the token is not valid for this session and caller.
func OpenNumber(q *Exchange, token string) (number string, ok bool) {
	key, _, ok := q.V.Options.Seals.Open(token, SessionOf(q.R), lookupCaller(q.Rights.Caller), BucketOf(q.Clock.Start))
	return strings.TrimRight(key.URI, " "), ok
}

// lookupCaller returns the name under which a caller's lookup tokens are sealed. It differs from the names of
// content addresses.
func lookupCaller(c understudy.Caller) string {
	return "lookup\x00" + c.Source + "\x00" + c.Role() + "\x00" + c.Name
}

// BucketOf returns the number of the time bucket that contains a moment.
func BucketOf(now time.Time) int64 { return now.Unix() / int64(MediaBucket/time.Second) }

// Session identifies one browser. It is no credential: it gives access to nothing that its caller may not have.
type Session = understudy.ID[sessions]

// sessions is the type of session ids.
type sessions struct{}

// Prefix returns "": session ids stand only in their own cookie.
func (sessions) Prefix() string { return "" }

// SessionOf returns the session in a browser's cookie, or zero if the cookie is missing or malformed.
func SessionOf(r *http.Request) (s Session) {
	if c, err := r.Cookie(SessionCookie); err == nil {
		s, _ = understudy.ParseID[sessions](c.Value)
	}
	return s
}

// Seals makes and opens the tokens in the addresses of contents and lookups. Its keys are random and stored
// nowhere, so no address works after a restart. It is safe for concurrent use.
type Seals struct {
	mac    [32]byte
	stream cipher.Block
}

// NewSeals returns seals with new random keys.
func NewSeals() (*Seals, error) {
	var s Seals
	var key [32]byte
	if _, err := rand.Read(s.mac[:]); err != nil {
		return nil, err
	}
	if _, err := rand.Read(key[:]); err != nil {
		return nil, err
	}
	var err error
	s.stream, err = aes.NewCipher(key[:])
	return &s, err
}

const tagSize = 16 // the number of bytes kept of an HMAC-SHA-256

// Seal returns the token of a key: HMAC || AES-CTR(source, 0, URI) with the HMAC as the first counter. This is SIV
// as in RFC 5297, with HMAC in place of CMAC. The same input makes the same token. The token is encrypted because
// addresses stand in logs and browser histories, and the ids in them may be hidden from the caller.
func (s *Seals) Seal(of Session, caller string, key understudy.Key, bucket int64) string {
	text := append(append([]byte(key.Source), 0), key.URI...)
	tag := s.tag(of, caller, text, bucket)
	out := append(tag, text...)
	cipher.NewCTR(s.stream, tag).XORKeyStream(out[tagSize:], text)
	return base64.RawURLEncoding.EncodeToString(out)
}

// Open returns the key that a token was made for, and the bucket in which it was made. ok is false for a token that
// another server made, that was made for another session or caller, or that is older than the previous bucket. The
// caller does not learn which.
func (s *Seals) Open(token string, of Session, caller string, now int64) (key understudy.Key, bucket int64, ok bool) {
	if len(token) > MaxToken {
		return key, 0, false
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(data) < tagSize {
		return key, 0, false
	}
	text := make([]byte, len(data)-tagSize)
	cipher.NewCTR(s.stream, data[:tagSize]).XORKeyStream(text, data[tagSize:])
	for bucket = now; bucket >= now-1; bucket-- {
		if hmac.Equal(data[:tagSize], s.tag(of, caller, text, bucket)) {
			source, uri, _ := bytes.Cut(text, []byte{0})
			return understudy.Key{Source: string(source), URI: string(uri)}, bucket, true
		}
	}
	return key, 0, false
}

func (s *Seals) tag(of Session, caller string, text []byte, bucket int64) []byte {
	h := hmac.New(sha256.New, s.mac[:])
	for _, part := range [][]byte{of.Raw[:], []byte(caller), binary.BigEndian.AppendUint64(nil, uint64(bucket)), text} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	return h.Sum(nil)[:tagSize:tagSize]
}
