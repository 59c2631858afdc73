// The audio or image of a record, as a page shows it. Nothing is fetched until a person plays or opens it.

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
	// The address of an audio or image changes once every MediaBucket, and works until the end of the next one: for
	// 15 to 30 minutes. So a browser that finds it on several pages fetches it only once.
	MediaBucket = 15 * time.Minute
	MaxToken    = 2 * spec.MaxKey
)

// player shows a caller the audio or image of a record.
type player struct {
	Hidden bool   // whether the caller may not have the audio or image
	Name   string // the name of the audio or image, such as "Recording RE12…"
	Audio  string // the address of the audio; empty if the content is no audio
	Image  string
	Files  []Link // links to download the audio or image
}

// Contents returns the player for a record's audio or image. It returns nil if the kind has neither, or if the server
// does not serve them.
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
		addContentAddress(p, m, row, url)
	}
	if p.Audio == "" && p.Image == "" && len(p.Files) == 0 && !p.Hidden {
		return nil
	}
	return p
}

// addContentAddress adds one address of an audio or image to the player: for the content itself, by its type, and as a file to
// download. An address without a file extension is offered as a download only if there is no other.
func addContentAddress(p *player, m *spec.Media, row access.Row, url string) {
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

// mediaType returns the likely media type of a record's content. It is the value of a field if the path allows that
// type, else the first type that the path allows.
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

// mediaTarget returns the target of a record's audio or image. It returns nil if neither the record nor the page's
// address has the value of a path variable.
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

// draw writes the audio player, the button that shows the image, and the downloads.
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

// MediaURL returns the address of an audio or image for this caller's browser, or "" if the caller may not have it.
// The address works only in this session, for this caller, and for at most half an hour. MediaURL starts a session by
// a cookie if there is none. If the page is sent in pieces, startStream has started the session before.
func MediaURL(q *Exchange, t *spec.Target) string {
	if q.V.Options.Media == nil || q.Rights.Gate.CheckMedia(q.Rights.Caller, t) != nil {
		return ""
	}
	q.Reply.openSession()
	return mediaPrefix + q.V.Options.Seals.Seal(q.Reply.session, q.Rights.Caller.Name, t.Key, BucketOf(q.V.Options.Now()))
}

// openSession sets the session of the browser. If the browser has none, it gets a new session by a cookie.
// openSession must run on the page's goroutine.
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
		SameSite: http.SameSiteStrictMode, Secure: y.r.TLS != nil || strings.HasPrefix(y.v.Options.PublicURL, "https:"),
	})
}

// SealNumber returns the token of a phone number that the caller looks up. The token works only in this session, for
// this caller and role, and for at most half an hour. All tokens have the same length, whatever the number.
func SealNumber(q *Exchange, number string) string {
	q.Reply.openSession()
	key := understudy.Key{URI: fmt.Sprintf("%-*s", understudy.MaxPhoneDigits+len("+"), number)}
	return q.V.Options.Seals.Seal(q.Reply.session, lookupCaller(q.Rights.Caller), key, BucketOf(q.V.Options.Now()))
}

// OpenNumber returns the phone number in a token. ok is false if the token is not valid for this session and caller.
func OpenNumber(q *Exchange, token string) (number string, ok bool) {
	key, _, ok := q.V.Options.Seals.Open(token, SessionOf(q.R), lookupCaller(q.Rights.Caller), BucketOf(q.Clock.Start))
	return strings.TrimRight(key.URI, " "), ok
}

// lookupCaller returns the caller's name that goes into tokens of phone numbers. It differs from the name in
// addresses of audio and images, so that neither can be used as the other.
func lookupCaller(c understudy.Caller) string {
	return "lookup\x00" + c.Source + "\x00" + c.Role() + "\x00" + c.Name
}

// BucketOf returns the number of the time span of length MediaBucket that contains a moment.
func BucketOf(now time.Time) int64 { return now.Unix() / int64(MediaBucket/time.Second) }

// Session identifies one browser. It is no credential: it gives access to nothing that its caller may not have.
type Session = understudy.ID[sessions]

// sessions is the type parameter of session ids.
type sessions struct{}

// Prefix returns "", because session ids appear only in a cookie and need no prefix.
func (sessions) Prefix() string { return "" }

// SessionOf returns the session in a browser's cookie, or zero if the cookie is missing or malformed.
func SessionOf(r *http.Request) (s Session) {
	if c, err := r.Cookie(SessionCookie); err == nil {
		s, _ = understudy.ParseID[sessions](c.Value)
	}
	return s
}

// Seals makes and opens the tokens in addresses of audio and images and of lookups. The keys of NewSeals are random and not
// stored, so no token works after a restart. It is safe for concurrent use.
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

// DeriveSeals returns seals whose keys are derived from a secret, so that every process with the secret opens the tokens of
// the others.
func DeriveSeals(secret []byte) (*Seals, error) {
	derive := func(of string) []byte {
		h := hmac.New(sha256.New, secret)
		h.Write([]byte(of))
		return h.Sum(nil)
	}
	s := &Seals{mac: [32]byte(derive("mac of tokens in addresses"))}
	var err error
	s.stream, err = aes.NewCipher(derive("cipher of tokens in addresses"))
	return s, err
}

const tagSize = 16 // the length of the HMAC-SHA-256 in a token, cut to this many bytes

// Seal returns the token of a key: HMAC || AES-CTR(source, 0, URI), with the HMAC as the first counter. This is SIV
// as in RFC 5297, with HMAC in place of CMAC. The same input makes the same token. The token is encrypted because
// addresses are stored in logs and browser histories, and the role may hide the ids in them.
func (s *Seals) Seal(of Session, caller string, key understudy.Key, bucket int64) string {
	text := append(append([]byte(key.Source), 0), key.URI...)
	tag := s.tag(of, caller, text, bucket)
	out := append(tag, text...)
	cipher.NewCTR(s.stream, tag).XORKeyStream(out[tagSize:], text)
	return base64.RawURLEncoding.EncodeToString(out)
}

// Open returns the key in a token and the time span in which the token was made. ok is false if another server made
// the token, if it was made for another session or caller, or if it is older than the previous time span. The caller
// does not learn which of these is the reason.
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
