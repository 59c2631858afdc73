// Media: the addresses under which a page's audio and images are played, and
// what answers there.

package viewer

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/kit/accesslog"
	"understudy/kit/content"
)

// Media opens the contents of records; mirror.Mirror fills it.
type Media interface {
	// Open is the content a media path names. Its errors are those of the root
	// package, and the context's. The Medium must be closed.
	Open(context.Context, understudy.MediaAsk) (*understudy.Medium, error)
}

const (
	mediaPrefix   = controlPrefix + "media/"
	sessionCookie = "understudy_session"
	// A medium has one address for a bucket of time and is answered there until
	// the end of the next: 15 to 30 minutes. So a browser that meets it on
	// several pages fetches it once.
	mediaBucket = 15 * time.Minute
	// mediaStall is how long a browser may take over 64 KiB.
	mediaStall = 30 * time.Second
	maxToken   = 2 * understudy.MaxURI
)

// mediaURL is the address of a content for this caller's browser, "" when the
// caller may not have it. It is good for this session, this caller and at most
// half an hour. The first one of a session sets its cookie; a page of a record
// that goes out in pieces has set it before (begun).
func mediaURL(q *exchange, t *understudy.Target) string {
	if q.v.Media == nil || q.gate.Media(q.caller, t) != nil {
		return ""
	}
	q.openSession()
	return mediaPrefix + q.v.Seals.seal(q.session, q.caller.Name, t.Key, bucketOf(q.v.Now()))
}

// openSession names the browser's session, and gives it a new one by a cookie
// when it has none. It runs on the goroutine of the page.
func (q *exchange) openSession() {
	if q.session.IsZero() {
		q.session = sessionOf(q.r)
	}
	if !q.session.IsZero() {
		return
	}
	_, _ = rand.Read(q.session.Raw[:]) // it never fails
	http.SetCookie(q.w, &http.Cookie{
		Name: sessionCookie, Value: q.session.Short(), Path: "/", HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Secure: strings.HasPrefix(q.v.PublicURL, "https:"),
	})
}

func bucketOf(now time.Time) int64 { return now.Unix() / int64(mediaBucket/time.Second) }

// session names what one browser has open. It is no credential: it opens
// nothing that its caller may not have.
type session = understudy.ID[sessions]

// sessions is the sort of their ids.
type sessions struct{}

// Prefix is none: they stand in a cookie that has a name.
func (sessions) Prefix() string { return "" }

// sessionOf is the session a browser says it has, zero when it is none of ours.
func sessionOf(r *http.Request) (s session) {
	if c, err := r.Cookie(sessionCookie); err == nil {
		s, _ = understudy.ParseID[sessions](c.Value)
	}
	return s
}

// Seals makes and opens the tokens of media addresses. Its keys are random and
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

// seal makes the token of a key: HMAC || AES-CTR(source, 0, URI) with the HMAC
// as the first counter (SIV, as in RFC 5297, with HMAC in place of CMAC). The
// same input makes the same token. It is encrypted because an address stands in
// logs and histories, and the ids in it may be hidden from the caller.
func (s *Seals) seal(of session, caller string, key understudy.Key, bucket int64) string {
	text := append(append([]byte(key.Source), 0), key.URI...)
	tag := s.tag(of, caller, text, bucket)
	out := append(tag, text...)
	cipher.NewCTR(s.stream, tag).XORKeyStream(out[tagSize:], text)
	return base64.RawURLEncoding.EncodeToString(out)
}

// open is the key a token was made for, and the bucket it was made in. ok is
// false for what was not made here, not for this session and caller, or longer
// ago than the bucket before now's; nobody learns which.
func (s *Seals) open(token string, of session, caller string, now int64) (key understudy.Key, bucket int64, ok bool) {
	if len(token) > maxToken {
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

func (s *Seals) tag(of session, caller string, text []byte, bucket int64) []byte {
	h := hmac.New(sha256.New, s.mac[:])
	for _, part := range [][]byte{of.Raw[:], []byte(caller), binary.BigEndian.AppendUint64(nil, uint64(bucket)), text} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	return h.Sum(nil)[:tagSize:tagSize]
}

// serveMedia answers a browser that plays or shows a content. It may take as
// long as the browser keeps taking it, so the viewer's deadline does not hold.
func serveMedia(v *Visitor) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		q, end := v.begin(ctx, w, r)
		defer end()
		defer cancel()
		if err := (mediaRequest{q}).media(); err != nil {
			q.fail(err)
		}
	})
}

var errMediaGone = notFound("This address is no longer good", "It was made for another session, or more than a quarter of an hour ago. Open the record again.", "/")

// mediaRequest is one request for a content.
type mediaRequest struct{ *exchange }

// media answers, or says why not; nothing has been sent when it returns an
// error.
func (q mediaRequest) media() (err error) {
	if q.caller, err = q.v.Callers.Person(q.r); err != nil {
		return err
	}
	q.known = true
	line := accesslog.Of(q.ctx)
	line.Caller = q.caller.Name
	key, bucket, ok := q.v.Seals.open(q.r.PathValue("token"), sessionOf(q.r), q.caller.Name, bucketOf(q.start))
	if !ok || q.v.Media == nil || q.v.byName[key.Source] == nil {
		return errMediaGone
	}
	q.source = q.v.byName[key.Source]
	t, err := q.source.Spec.Target(key.Source, key.Path(), key.Query())
	if err != nil {
		return err
	}
	if err := q.gate.Media(q.caller, t); err != nil {
		return err
	}
	switch err := q.gate.Find(q.ctx, q.caller, t, q.v.Mirror.Page); {
	case errors.Is(err, understudy.ErrNotFound):
		return errMediaGone
	case err != nil:
		return err
	}
	m, err := q.v.Media.Open(q.ctx, q.mediaAsk(t))
	if err != nil {
		return err
	}
	defer m.Close()
	line.How, line.Upstream = m.How.String(), m.Upstream
	return q.sendMedium(t, m, time.Unix((bucket+2)*int64(mediaBucket/time.Second), 0).Sub(q.start))
}

// mediaAsk is what the browser's request asks the mirror.
func (q mediaRequest) mediaAsk(t *understudy.Target) understudy.MediaAsk {
	a := understudy.MediaAsk{Target: t, Head: q.r.Method == http.MethodHead, NoCache: forced(q.r), Turn: q.caller.Turn}
	if a.Range = content.Range(q.r.Header); a.Range != "" && !a.Head {
		a.IfRange = q.r.Header.Get("If-Range")
	}
	if q.caller.Grant != nil {
		a.MaxStale = q.caller.Grant.MaxStale
	}
	return a
}

// sendMedium sends what the mirror opened; left is how long the address is
// still good.
func (q mediaRequest) sendMedium(t *understudy.Target, m *understudy.Medium, left time.Duration) error {
	h := q.w.Header()
	switch m.Status {
	case http.StatusOK, http.StatusPartialContent:
	case http.StatusRequestedRangeNotSatisfiable:
		return q.noRange(m.ContentRange)
	default:
		return notFound("This "+t.Kind.One+" has no content any more", "It may have been deleted, or it is not ready yet.", "")
	}
	h.Set("Cache-Control", "private, max-age="+strconv.Itoa(max(0, int(left/time.Second))))
	if m.Detail != "" {
		h.Set("Cache-Control", "private, no-cache") // perhaps somebody has deleted it meanwhile
	}
	_, err := content.Send(q.w, q.r, content.Content{
		File: m.File, Body: m, Status: m.Status, Size: m.Size, Range: m.ContentRange,
		Type: m.ContentType, ETag: m.ETag, Modified: m.Modified, Shown: t.Media.Types,
		Deadline: func() time.Time { return q.v.Now().Add(mediaStall) },
	})
	switch {
	case errors.Is(err, content.ErrRange):
		return q.noRange(h.Get("Content-Range"))
	case err != nil:
		panic(http.ErrAbortHandler) // the rest will not come; a part must not look whole
	}
	return nil
}

// noRange answers a range beyond the end.
func (q mediaRequest) noRange(size string) error {
	h := q.w.Header()
	for _, name := range []string{"Content-Length", "Content-Disposition", "Etag", "Last-Modified"} {
		h.Del(name)
	}
	h.Set("Cache-Control", "private, no-store")
	if size != "" {
		h.Set("Content-Range", size)
	}
	http.Error(q.w, fmt.Sprintf("%d range not satisfiable", http.StatusRequestedRangeNotSatisfiable), http.StatusRequestedRangeNotSatisfiable)
	return nil
}
