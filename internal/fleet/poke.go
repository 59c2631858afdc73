// This file has the messages between nodes. A message only says that there is something new, and carries no data.

package fleet

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/kit/lockwatch"

	"understudy/internal/store/nodes"
	"understudy/kit/accesslog"
)

const (
	// PokePath is the path at which a node receives pokes.
	PokePath = "/-/nodes/poke"
	// pokeHeader is the header field with the time of a poke in Unix seconds, a colon, and a signature. The signature
	// covers the time and the id of the receiver.
	pokeHeader = "Understudy-Node"
	// maxPokeAge is the maximum difference between the time of a poke and the clock of the receiver.
	maxPokeAge  = 30 * time.Second
	pokeTimeout = 500 * time.Millisecond
	maxPokes    = 16 // the maximum number of pokes that are sent at once
)

// pokes tracks the pokes that are being sent.
type pokes struct {
	sending chan struct{} // has one element for each poke that is being sent
	mu      lockwatch.Mutex
	to      map[string]bool // the nodes to which a poke is being sent
}

// sendPokes tells other nodes that there is something new. It sends at most one poke at a time to each node. It does not wait.
func (f *Fleet) sendPokes(others []nodes.Node) {
	if f.o.Secret.IsEmpty() {
		return
	}
	for _, n := range others {
		if n.URL == "" || !f.pokes.begin(n.ID) {
			continue
		}
		go func() {
			defer f.pokes.end(n.ID)
			f.sendPoke(n)
		}()
	}
}

// begin reports whether a poke may be sent to a node now. If it returns true, the caller must call end.
func (p *pokes) begin(id string) (ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.to[id] {
		return false
	}
	select {
	case p.sending <- struct{}{}:
	default:
		return false
	}
	if p.to == nil {
		p.to = map[string]bool{}
	}
	p.to[id] = true
	return true
}

func (p *pokes) end(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.to, id)
	<-p.sending
}

// sendPoke sends a poke. If sending fails, the node finds the change a little later without the poke.
func (f *Fleet) sendPoke(n nodes.Node) {
	ctx, cancel := context.WithTimeout(context.Background(), pokeTimeout)
	defer cancel()
	url, _, hasTLS := strings.Cut(n.URL, "#")
	client := f.o.Client
	if hasTLS {
		client = f.known
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(url, "/")+PokePath, nil)
	if err != nil {
		return
	}
	at := strconv.FormatInt(f.o.Now().Unix(), 10)
	r.Header.Set(pokeHeader, at+":"+f.sign(at, n.ID))
	if answer, err := client.Do(r); err == nil {
		_ = answer.Body.Close()
	}
}

// isNode reports whether a fingerprint is that of a node in the database.
func (f *Fleet) isNode(fingerprint string) bool {
	return slices.ContainsFunc(f.Nodes(), func(n nodes.Node) bool { return strings.HasSuffix(n.URL, "#"+fingerprint) })
}

// sign returns the signature of a time for the receiving node.
func (f *Fleet) sign(at, id string) string {
	h := hmac.New(sha256.New, []byte(f.o.Secret.Reveal()))
	h.Write([]byte(PokePath + "\n" + at + "\n" + id))
	return hex.EncodeToString(h.Sum(nil))
}

// ServeHTTP receives a poke. It answers 404 to every request that no other node has signed within the last 30 s, as if the
// path did not exist.
func (f *Fleet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !f.isPoke(r) {
		http.NotFound(w, r)
		return
	}
	accesslog.LineOf(r.Context()).Skip = true // there may be many in a second
	f.o.News()
	understudy.Wake(f.wake)
	w.WriteHeader(http.StatusNoContent)
}

// isPoke reports whether another node has signed a request for this one.
func (f *Fleet) isPoke(r *http.Request) bool {
	at, signature, ok := strings.Cut(r.Header.Get(pokeHeader), ":")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if !ok || err != nil || f.o.Secret.IsEmpty() || r.Method != http.MethodPost {
		return false
	}
	age := f.o.Now().Sub(time.Unix(seconds, 0))
	return hmac.Equal([]byte(signature), []byte(f.sign(at, f.o.Node.ID))) && -maxPokeAge < age && age < maxPokeAge
}

// NewSettings returns the text by which nodes compare their settings. It contains only hashes of the settings, so that
// nobody can read a value in it.
func NewSettings(values map[string]string) string {
	short := make(map[string]string, len(values))
	for name, value := range values {
		sum := sha256.Sum256([]byte(name + "\x00" + value))
		short[name] = hex.EncodeToString(sum[:8])
	}
	text, _ := json.Marshal(short) // an error is not possible for a map of strings
	return string(text)
}

// parseSettings returns the hashes in a text of NewSettings, or nil for any other text.
func parseSettings(text string) (hashes map[string]string) {
	_ = json.Unmarshal([]byte(text), &hashes)
	return hashes
}
