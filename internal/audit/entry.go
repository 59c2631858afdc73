// Entry: a line of the log.

package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"understudy"
	"understudy/kit/accesslog"
)

// Entry is a line of the log. Its hash is the SHA-256 of the line as it stands, without
// a line end. Names are only added.
type Entry struct {
	Chain  string    `json:"chain"`
	Number uint64    `json:"n"`    // in its chain, from 1
	Prev   string    `json:"prev"` // the hash of the line before, in hex; zeros in the first
	At     time.Time `json:"at"`

	Caller  string            `json:"caller,omitempty"` // the name of its credential, or of a person
	Role    string            `json:"role,omitempty"`
	Action  understudy.Action `json:"action,omitempty"`
	What    string            `json:"what,omitempty"`
	Source  string            `json:"source,omitempty"`
	Kind    string            `json:"kind,omitempty"`
	IDs     []string          `json:"ids,omitempty"` // of records, the first hundred
	Rows    int64             `json:"rows,omitempty"`
	Values  []string          `json:"values,omitempty"` // keyed hashes of searched words and numbers, and of the numbers of a record
	Request string            `json:"request,omitempty"`
	Status  int               `json:"status,omitempty"` // of an answer that was refused, and of one that says what was made
	Count   int64             `json:"count,omitempty"`  // answers that are counted together; 0: this is one

	Begin      *Begin      `json:"begin,omitempty"`
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	Cut        *Cut        `json:"cut,omitempty"`
}

// Begin is the first line of a chain.
type Begin struct {
	Key string `json:"key"` // the public key that is to sign it
}

// Checkpoint is the head of a chain, signed.
type Checkpoint struct {
	Chain string    `json:"chain"`
	Count uint64    `json:"count"` // lines up to the head
	Head  string    `json:"head"`  // the hash of the last of them
	At    time.Time `json:"at"`
	Key   string    `json:"key"` // the public key, base64
	Sig   string    `json:"sig"` // Ed25519 (RFC 8032), base64
}

// Cut says that entries were removed because they were too old.
type Cut struct {
	Chain  string `json:"chain"`
	Before uint64 `json:"before"` // entries before this one may be gone
}

// The bounds of an entry.
const (
	mostIDs    = 100
	mostValues = 200
	mostText   = 200 // bytes of any text
)

// encode is the line of what a caller did, but for its place in the chain.
func (l *Log) encode(e understudy.AuditEntry) ([]byte, error) {
	out := Entry{
		At: e.At, Caller: l.o.Key.plain(e.Caller.Name), Role: clip(e.Caller.Role()), Action: e.Action, What: clip(e.What), Source: clip(e.Source),
		Kind: clip(e.Kind), Rows: int64(e.Rows), Values: l.o.Key.Hashes(e.Values), Request: l.o.Key.request(e.Request), Status: e.Status,
	}
	for _, id := range e.IDs[:min(len(e.IDs), mostIDs)] {
		out.IDs = append(out.IDs, l.o.Key.plain(id))
	}
	return l.line(out)
}

// line is an entry as JSON without chain, number and hash, which it gets in its chain.
func (l *Log) line(e Entry) ([]byte, error) {
	if e.At.IsZero() {
		e.At = l.o.Now()
	}
	return lineOf(e)
}

func lineOf(e Entry) ([]byte, error) {
	e.At = e.At.UTC()
	type placeless struct { // the fields of the place are shadowed by others without a value
		Chain  string `json:"chain,omitempty"`
		Number uint64 `json:"n,omitempty"`
		Prev   string `json:"prev,omitempty"`
		Entry
	}
	data, err := json.Marshal(placeless{Entry: e})
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return data, nil
}

// plain is a name or an id as it is written. One that is or holds a phone number with its
// country's code is a hash.
func (k Key) plain(text string) string {
	digits := -1 // behind a plus; -1: there was none
	for i := range len(text) {
		switch c := text[i]; {
		case c == '+':
			digits = 0
		case c >= '0' && c <= '9' && digits >= 0:
			digits++
		default:
			digits = -1
		}
		if digits == understudy.LeastPhone {
			return k.Hash(text)
		}
	}
	if understudy.ReadPhone(text).Country {
		return k.Hash(text)
	}
	return clip(text)
}

// request returns the id of a request as it is written. A caller chooses it: one that may hold a
// phone number is a hash.
func (k Key) request(id string) string {
	if accesslog.CanContainPhoneNumber(id) {
		return k.Hash(id)
	}
	return k.plain(id)
}

func clip(text string) string {
	if len(text) <= mostText {
		return text
	}
	return text[:mostText-len("…")] + "…"
}

// placed is a line at its place in a chain.
func placed(chain string, number uint64, prev [sha256.Size]byte, body []byte) []byte {
	line := make([]byte, 0, len(body)+160)
	line = append(append(line, `{"chain":"`...), chain...)
	line = strconv.AppendUint(append(line, `","n":`...), number, 10)
	line = hex.AppendEncode(append(line, `,"prev":"`...), prev[:])
	line = append(line, `",`...)
	return append(line, body[1:]...)
}
