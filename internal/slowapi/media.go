// Media: what messages carry besides text, and the signed addresses of its content.
package slowapi

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

var media = &kind{
	name: "media", key: "media_list", prefix: "ME", tag: 'E',
	blank:   func() row { return new(medium) },
	derive:  deriveMedia,
	filters: clockFilters("DateCreated", false, func(r row) int64 { return r.(*medium).created }),
	remove:  true,
}

// places is how many indexes each message has for its media, most of them empty.
const places = 16

// maxMedia is how many media a message may carry.
const maxMedia = 10

// deriveMedia makes the media of an account those its messages carry.
func deriveMedia(w *world, s *sequence) {
	s.size = func() int64 { return places * s.among[messages].count() }
	s.at = func(i int64) int64 { return s.among[messages].created(i / places) }
	s.has = func(i int64) bool { return i%places < int64(sentMedia(s.among[messages], i/places)) }
}

// sentMedia is with how many media a message was sent.
func sentMedia(s *sequence, message int64) int {
	if !s.written(message) {
		if mediaPlace(s.seed, message/20) == message {
			return 1
		}
		return 0
	}
	text, _ := s.form(message, "MediaUrl")
	n, _ := strconv.Atoi(text)
	return min(max(n, 0), maxMedia)
}

// deletedMedia is how many media of a message were deleted.
func deletedMedia(s *sequence, message int64) int {
	gone := s.among[media].gone
	first, _ := slices.BinarySearch(gone, message*places)
	end, _ := slices.BinarySearch(gone, (message+1)*places)
	return end - first
}

// medium is one of the media of a message.
type medium struct {
	s       *sequence
	i       int64
	created int64
}

// load reads the medium with an index.
func (m *medium) load(_ *world, s *sequence, i int64) { *m = medium{s, i, s.created(i)} }

// contentType is what sort of picture it is.
func (m *medium) contentType() string {
	d := rngFor(m.s.seed, m.s.kind.tag, m.i)
	if d.below(2) == 0 {
		return "image/png"
	}
	return "image/jpeg"
}

// append writes the medium's row, which is its instance too.
func (m *medium) append(dst []byte, w *world) []byte {
	account := w.accountSID(m.s.account)
	message := string(w.appendSID(nil, m.s.among[messages], m.i/places))
	sid := string(w.appendSID(nil, m.s, m.i))

	o := object{b: dst}
	o.open()
	o.text("account_sid", account)
	o.text("content_type", m.contentType())
	o.date("date_created", m.created)
	o.date("date_updated", m.created)
	o.text("parent_sid", message)
	o.text("sid", sid)
	o.text("uri", version+"/Accounts/"+account+"/Messages/"+message+"/Media/"+sid+".json")
	o.close()
	return o.b
}

// mediaOf are the places of a message.
func mediaOf(_ *world, _ *sequence, message int64) condition {
	return condition{func(r row) bool { return r.(*medium).i/places == message }, message * places, (message+1)*places - 1}
}

// redirectMedium answers the path of a medium without .json: the content is
// elsewhere, for a while, for whoever knows the address.
func (s *Server) redirectMedium(_ *http.Request, t target, _ url.Values) (answer, error) {
	if s.quirks.on(mediaLate) && s.early.first(t.seq.account, t.index) {
		return notFound(t.path).answer(), nil
	}
	to := t.here + s.cdn.path(t.account, t.sids[len(t.sids)-1], s.now())
	return answer{status: http.StatusTemporaryRedirect, header: map[string]string{"Location": to}}, nil
}

const tagPictures = 0x706963

// pictureOf is the picture a medium holds: the sample of its type, with the
// medium's own tag behind the end of the image, where no reader of images looks.
func pictureOf(m *medium) content {
	tag := fmt.Sprintf("%016x", uint64(rngFor(m.s.seed, tagPictures, m.i+places*int64(m.s.account)<<40)))
	sort := m.contentType()
	raw := append(sampleNamed("picture."+strings.TrimPrefix(sort, "image/")), tag...)
	return content{ReadSeeker: bytes.NewReader(raw), sort: sort, tag: `"` + tag + `"`, modified: time.Unix(m.created, 0)}
}

// cdn signs the addresses of contents, as CloudFront does for Twilio's media:
// no credentials, but an end to each.
type cdn struct {
	secret [32]byte // of this process
}

const (
	cdnPath  = "/-/cdn/"
	cdnValid = 5 * time.Minute // an address, in real time: the world may stand still
)

func newCDN() *cdn {
	c := new(cdn)
	_, _ = rand.Read(c.secret[:]) // never fails, or ends the program
	return c
}

// path is the address of a medium's content, from now on for a while.
func (c *cdn) path(account int, sid string, now time.Time) string {
	name := cdnPath + strconv.Itoa(account) + "/" + sid
	expires := strconv.FormatInt(now.Add(cdnValid).Unix(), 10)
	return name + "?Expires=" + expires + "&Signature=" + c.sign(name, expires)
}

func (c *cdn) sign(name, expires string) string {
	mac := hmac.New(sha256.New, c.secret[:])
	mac.Write([]byte(name + "\n" + expires))
	return hex.EncodeToString(mac.Sum(nil))
}

// opens tells whether an address was signed here and is not over.
func (c *cdn) opens(name, expires, signature string, now time.Time) bool {
	until, err := strconv.ParseInt(expires, 10, 64)
	return err == nil && now.Unix() <= until && hmac.Equal([]byte(signature), []byte(c.sign(name, expires)))
}

// serveCDN answers a request below /-/cdn/.
func (s *Server) serveCDN(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "this takes GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	if !s.cdn.opens(r.URL.Path, q.Get("Expires"), q.Get("Signature"), s.now()) {
		http.Error(w, "the address is not signed, or its time is over", http.StatusForbidden)
		return
	}
	c, there := s.picture(r.URL.Path)
	if !there {
		http.NotFound(w, r)
		return
	}
	c.serve(w, r)
}

// picture finds the content a path below /-/cdn/ names.
func (s *Server) picture(path string) (content, bool) {
	number, sid, _ := strings.Cut(strings.TrimPrefix(path, cdnPath), "/")
	account, err := strconv.Atoi(number)
	w := s.world
	w.mu.RLock()
	defer w.mu.RUnlock()
	all := w.of(media, account)
	if err != nil || all == nil {
		return content{}, false
	}
	i, ok := w.find(all, sid)
	if !ok || !all.exists(i) || !all.among[messages].exists(i/places) {
		return content{}, false
	}
	var m medium
	m.load(w, all, i)
	return pictureOf(&m), true
}

// asked remembers which media were asked for, for the quirk media-late.
type asked struct {
	mu   sync.Mutex
	seen map[[2]int64]bool
}

// maxAsked bounds what is remembered; past it everything is forgotten.
const maxAsked = 100_000

// first tells whether nobody asked for this one before.
func (a *asked) first(account int, i int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen == nil || len(a.seen) >= maxAsked {
		a.seen = map[[2]int64]bool{}
	}
	key := [2]int64{int64(account), i}
	first := !a.seen[key]
	a.seen[key] = true
	return first
}
