// The audio of recordings and the pictures of messages, and the signed URLs of pictures.
package slowapi

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/kinds"
	"understudy/internal/slowapi/world"
)

// serveAudio answers the path of a recording without .json. It sends WAV, or MP3 if the path ends in .mp3. It answers
// 404 until the recording is complete.
func serveAudio(x *world.Request) format.Answer {
	mp3, channels := strings.HasSuffix(x.Incoming.Path, ".mp3"), x.Incoming.Query.Get("RequestedChannels")
	c, there := kinds.AudioOf(x.World, x.Sequence, x.Index, mp3, channels)
	if !x.Sequence.HasRecord(x.Index) || !there {
		return x.NewNotFound()
	}
	return format.Answer{Status: http.StatusOK, Content: &c}
}

// redirectMedium answers the path of a picture without .json. It redirects to a signed URL that expires.
func (t *twilio) redirectMedium(x *world.Request) format.Answer {
	if t.quirks[world.MediaLate] && t.requested.markRequested(x.Account, x.Index) {
		return x.NewNotFound()
	}
	to := x.Incoming.BaseURL + t.cdn.path(x.Account, x.Incoming.Vars[len(x.Incoming.Vars)-1], t.now())
	return format.Answer{Status: http.StatusTemporaryRedirect, Header: map[string]string{"Location": to}}
}

// cdn signs the URLs of pictures, as CloudFront does for Twilio. A signed URL needs no credentials and expires.
type cdn struct {
	secret [32]byte // the signing key, new in each process
}

const (
	cdnPath     = "/-/cdn/"
	cdnLifetime = 5 * time.Minute // how long a signed URL is valid, in real time, because the clock of the simulated world may stand still
)

func newCDN() *cdn {
	c := new(cdn)
	_, _ = rand.Read(c.secret[:]) // crypto/rand returns no error; if it fails, it ends the program
	return c
}

// path returns the signed path of a picture. It expires cdnLifetime after now.
func (c *cdn) path(account int, sid string, now time.Time) string {
	name := cdnPath + strconv.Itoa(account) + "/" + sid
	expires := strconv.FormatInt(now.Add(cdnLifetime).Unix(), 10)
	return name + "?Expires=" + expires + "&Signature=" + c.sign(name, expires)
}

func (c *cdn) sign(name, expires string) string {
	mac := hmac.New(sha256.New, c.secret[:])
	mac.Write([]byte(name + "\n" + expires))
	return hex.EncodeToString(mac.Sum(nil))
}

// isValid reports whether the signature of a path is correct and the path has not expired.
func (c *cdn) isValid(name, expires, signature string, now time.Time) bool {
	until, err := strconv.ParseInt(expires, 10, 64)
	return err == nil && now.Unix() <= until && hmac.Equal([]byte(signature), []byte(c.sign(name, expires)))
}

// serveCDN answers a request below /-/cdn/.
func (t *twilio) serveCDN(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "this takes GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	if !t.cdn.isValid(r.URL.Path, q.Get("Expires"), q.Get("Signature"), t.now()) {
		http.Error(w, "the address is not signed, or its time is over", http.StatusForbidden)
		return
	}
	c, there := t.findPicture(r.URL.Path)
	if !there {
		http.NotFound(w, r)
		return
	}
	c.Serve(w, r)
}

// findPicture returns the picture that a path below /-/cdn/ names.
func (t *twilio) findPicture(path string) (format.Content, bool) {
	number, sid, _ := strings.Cut(strings.TrimPrefix(path, cdnPath), "/")
	account, err := strconv.Atoi(number)
	w := t.world
	w.Mu.RLock()
	defer w.Mu.RUnlock()
	all := w.Sequence(kinds.Media, account)
	if err != nil || all == nil {
		return format.Content{}, false
	}
	i, ok := w.Find(all, sid)
	if !ok || !all.HasRecord(i) || !all.Siblings[kinds.Messages].HasRecord(i/kinds.MediaSlots) {
		return format.Content{}, false
	}
	return kinds.PictureOf(all, i), true
}

// requestedMedia remembers which pictures were requested, for the quirk media-late.
type requestedMedia struct {
	mu   sync.Mutex
	seen map[[2]int64]bool
}

// maxRequestedMedia is the maximum number of pictures to remember. When it is reached, all are forgotten.
const maxRequestedMedia = 100_000

// markRequested notes that a picture was requested. It reports whether this was the first request for it.
func (a *requestedMedia) markRequested(account int, i int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen == nil || len(a.seen) >= maxRequestedMedia {
		a.seen = map[[2]int64]bool{}
	}
	key := [2]int64{int64(account), i}
	first := !a.seen[key]
	a.seen[key] = true
	return first
}
