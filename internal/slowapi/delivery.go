// Deliveries: the contents of recordings and media, and their signed addresses.
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

// serveAudio answers the path of a recording without .json: WAV, unless it ends
// in .mp3. Nothing is there before the recording is complete.
func serveAudio(x *world.Request) format.Answer {
	c, there := kinds.Sound(x.W, x.S, x.Index, strings.HasSuffix(x.In.Path, ".mp3"), x.In.Query.Get("RequestedChannels"))
	if !x.S.Exists(x.Index) || !there {
		return x.NotFound()
	}
	return format.Answer{Status: http.StatusOK, Content: &c}
}

// redirectMedium answers the path of a medium without .json: the content is
// elsewhere, for a while, for a client that knows the address.
func (t *twilio) redirectMedium(x *world.Request) format.Answer {
	if t.quirks[world.MediaLate] && t.early.first(x.Account, x.Index) {
		return x.NotFound()
	}
	to := x.In.Here + t.cdn.path(x.Account, x.In.Vars[len(x.In.Vars)-1], t.now())
	return format.Answer{Status: http.StatusTemporaryRedirect, Header: map[string]string{"Location": to}}
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
func (t *twilio) serveCDN(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "this takes GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	if !t.cdn.opens(r.URL.Path, q.Get("Expires"), q.Get("Signature"), t.now()) {
		http.Error(w, "the address is not signed, or its time is over", http.StatusForbidden)
		return
	}
	c, there := t.picture(r.URL.Path)
	if !there {
		http.NotFound(w, r)
		return
	}
	c.Serve(w, r)
}

// picture finds the content a path below /-/cdn/ names.
func (t *twilio) picture(path string) (format.Content, bool) {
	number, sid, _ := strings.Cut(strings.TrimPrefix(path, cdnPath), "/")
	account, err := strconv.Atoi(number)
	w := t.world
	w.Mu.RLock()
	defer w.Mu.RUnlock()
	all := w.Of(kinds.Media, account)
	if err != nil || all == nil {
		return format.Content{}, false
	}
	i, ok := w.Find(all, sid)
	if !ok || !all.Exists(i) || !all.Among[kinds.Messages].Exists(i/kinds.Places) {
		return format.Content{}, false
	}
	return kinds.PictureOf(all, i), true
}

// asked remembers which media were asked for, for the quirk media-late.
type asked struct {
	mu   sync.Mutex
	seen map[[2]int64]bool
}

// maxAsked bounds what is remembered; past it everything is forgotten.
const maxAsked = 100_000

// first reports whether this is the first request for a medium.
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
