// Play: a record's audio or image as a page offers it. Nothing is fetched until
// a person asks for it.

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
	// A medium has one address for a bucket of time and is answered there until
	// the end of the next: 15 to 30 minutes. So a browser that meets it on
	// several pages fetches it once.
	MediaBucket = 15 * time.Minute
	MaxToken    = 2 * spec.MaxKey
)

// playing is the content of a record, for one caller.
type playing struct {
	Hidden bool   // the caller may not have it
	Name   string // "Recording RE12…"
	Audio  string // address to play, "" when it is no audio
	Image  string
	Files  []Link // to keep
}

// Contents are what a record's content offers; nil when the kind has none, or
// contents are not served.
func (q *Exchange) Contents(k *plan.Kind, row access.Row, vars understudy.Query) *playing {
	if len(k.Spec.Media) == 0 || row.ID == "" || q.V.Options.Media == nil {
		return nil
	}
	p := &playing{Name: plan.UpperFirst(k.Spec.One) + " " + ShortID(row.ID)}
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

// offer adds one address of a content: to play or show by its type, to keep
// under its extension. An address without one is kept only when it is alone.
func offer(p *playing, m *spec.Media, row access.Row, url string) {
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

// mediaType is what a content most likely is: the type a field of the record
// gives, where it is one the path may have; else the first the path may have.
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

// mediaTarget is the content of a record, nil when its path needs what neither
// the record nor the page has.
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
	t, err := k.Source.Spec.Target(k.Source.Name, at, "")
	if err != nil || t.Media != m {
		return nil
	}
	return t
}

// draw writes the player, the button that shows an image, and the files.
func (p *playing) draw(b *strings.Builder) {
	if p.Hidden {
		b.WriteString(`<span class="hidden" title="Your role does not show this">hidden</span>`)
		return
	}
	b.WriteString(`<div class="media">`)
	if p.Audio != "" {
		b.WriteString(`<audio controls preload="none"`)
		attribute(b, "src", p.Audio)
		attribute(b, "aria-label", p.Name)
		b.WriteString("></audio>")
	}
	if p.Image != "" {
		b.WriteString(`<a class="button"`)
		attribute(b, "href", p.Image)
		attribute(b, "data-image", p.Name)
		b.WriteString(">Show image</a>")
	}
	for _, f := range p.Files {
		b.WriteString(`<a download`)
		attribute(b, "href", f.Href)
		attribute(b, "aria-label", p.Name+": "+f.Text)
		b.WriteByte('>')
		escape(b, f.Text)
		b.WriteString("</a>")
	}
	b.WriteString("</div>")
}

// MediaURL is the address of a content for this caller's browser, "" when the
// caller may not have it. It is good for this session, this caller and at most
// half an hour. The first one of a session sets its cookie; a page of a record
// that goes out in pieces has set it before (begun).
func MediaURL(q *Exchange, t *spec.Target) string {
	if q.V.Options.Media == nil || q.Rights.Gate.Media(q.Rights.Caller, t) != nil {
		return ""
	}
	q.Reply.openSession()
	return mediaPrefix + q.V.Options.Seals.Seal(q.Reply.session, q.Rights.Caller.Name, t.Key, BucketOf(q.V.Options.Now()))
}

// openSession names the browser's session, and gives it a new one by a cookie
// when it has none. It runs on the goroutine of the page.
func (y *Reply) openSession() {
	if y.session.IsZero() {
		y.session = SessionOf(y.r)
	}
	if !y.session.IsZero() {
		return
	}
	_, _ = rand.Read(y.session.Raw[:]) // it never fails
	http.SetCookie(y.W, &http.Cookie{
		Name: SessionCookie, Value: y.session.Short(), Path: "/", HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Secure: strings.HasPrefix(y.v.Options.PublicURL, "https:"),
	})
}

// SealNumber returns the token of a number that the caller looks up. It is good for this session,
// caller and role, and at most half an hour. Every number's has the same length.
func SealNumber(q *Exchange, number string) string {
	q.Reply.openSession()
	key := understudy.Key{URI: fmt.Sprintf("%-*s", understudy.MostPhone+len("+"), number)}
	return q.V.Options.Seals.Seal(q.Reply.session, looksUp(q.Rights.Caller), key, BucketOf(q.V.Options.Now()))
}

// OpenNumber returns the number of a token; ok is false where SealNumber would not make it.
func OpenNumber(q *Exchange, token string) (number string, ok bool) {
	key, _, ok := q.V.Options.Seals.Open(token, SessionOf(q.R), looksUp(q.Rights.Caller), BucketOf(q.Clock.Start))
	return strings.TrimRight(key.URI, " "), ok
}

// looksUp names who looks up a number. The address of a content has another name.
func looksUp(c understudy.Caller) string {
	return "lookup\x00" + c.Source + "\x00" + c.Role() + "\x00" + c.Name
}

// BucketOf is the bucket of time a moment is in.
func BucketOf(now time.Time) int64 { return now.Unix() / int64(MediaBucket/time.Second) }

// Session names what one browser has open. It is no credential: it opens
// nothing that its caller may not have.
type Session = understudy.ID[sessions]

// sessions is the sort of their ids.
type sessions struct{}

// Prefix is none: they stand in a cookie that has a name.
func (sessions) Prefix() string { return "" }

// SessionOf is the session a browser says it has, zero when it is none of ours.
func SessionOf(r *http.Request) (s Session) {
	if c, err := r.Cookie(SessionCookie); err == nil {
		s, _ = understudy.ParseID[sessions](c.Value)
	}
	return s
}

// Seals makes and opens the tokens of the addresses of contents and lookups. Its keys are random and
// kept nowhere: a restart ends every address. It is safe for concurrent use.
type Seals struct {
	mac    [32]byte
	stream cipher.Block
}

// NewSeals makes seals with keys of their own.
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

const tagSize = 16 // bytes of an HMAC-SHA-256 that are kept

// Seal makes the token of a key: HMAC || AES-CTR(source, 0, URI) with the HMAC
// as the first counter (SIV, as in RFC 5297, with HMAC in place of CMAC). The
// same input makes the same token. It is encrypted because an address stands in
// logs and histories, and the ids in it may be hidden from the caller.
func (s *Seals) Seal(of Session, caller string, key understudy.Key, bucket int64) string {
	text := append(append([]byte(key.Source), 0), key.URI...)
	tag := s.tag(of, caller, text, bucket)
	out := append(tag, text...)
	cipher.NewCTR(s.stream, tag).XORKeyStream(out[tagSize:], text)
	return base64.RawURLEncoding.EncodeToString(out)
}

// Open is the key a token was made for, and the bucket it was made in. ok is
// false for a token that was made elsewhere, for another session or caller, or
// before the bucket that precedes now's. The caller does not learn which.
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
