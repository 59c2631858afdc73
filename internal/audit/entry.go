// This file encodes an entry, which is one line of the log.

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

// Entry is a line of the log. Its hash is the SHA-256 of the line as written, without the line end. Field names
// are only added, never changed.
type Entry struct {
	Chain  string    `json:"chain"`
	Number uint64    `json:"n"`    // the number of the line in its chain, beginning with 1
	Prev   string    `json:"prev"` // the hash of the previous line in hex; zeros in the first line
	At     time.Time `json:"at"`

	Caller  string            `json:"caller,omitempty"` // the name of the credential or of the person
	Role    string            `json:"role,omitempty"`
	Action  understudy.Action `json:"action,omitempty"`
	What    string            `json:"what,omitempty"`
	Source  string            `json:"source,omitempty"`
	Kind    string            `json:"kind,omitempty"`
	IDs     []string          `json:"ids,omitempty"` // the ids of the first hundred records
	Rows    int64             `json:"rows,omitempty"`
	Values  []string          `json:"values,omitempty"` // keyed hashes of searched words and numbers, and of the numbers of a record
	Request string            `json:"request,omitempty"`
	Status  int               `json:"status,omitempty"` // the status of a refused response, or of a response to a change
	Count   int64             `json:"count,omitempty"`  // the number of responses counted together; 0 for a single response

	Begin      *Begin      `json:"begin,omitempty"`
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	Cut        *Cut        `json:"cut,omitempty"`
}

// Begin is the content of the first line of a chain.
type Begin struct {
	Key string `json:"key"` // the public key that will sign the chain
}

// Checkpoint is the content of a line with the signed head of a chain.
type Checkpoint struct {
	Chain string    `json:"chain"`
	Count uint64    `json:"count"` // the number of lines that the checkpoint signs
	Head  string    `json:"head"`  // the hash of the last signed line
	At    time.Time `json:"at"`
	Key   string    `json:"key"` // the public key in base64
	Sig   string    `json:"sig"` // the Ed25519 signature (RFC 8032) in base64
}

// Cut is the content of a line which says that entries were removed because they were too old.
type Cut struct {
	Chain  string `json:"chain"`
	Before uint64 `json:"before"` // entries with lower numbers may be missing
}

// The limits of an entry.
const (
	maxIDs    = 100
	maxValues = 200
	maxText   = 200 // the maximum length in bytes of any text
)

// encode returns the line of an action, without its place in the chain (chain, number and previous hash).
func (l *Log) encode(e understudy.AuditEntry) ([]byte, error) {
	out := Entry{
		At: e.At, Caller: l.o.Key.hashIfNumber(e.Caller.Name), Role: clip(e.Caller.Role()), Action: e.Action, What: clip(e.What),
		Source: clip(e.Source), Kind: clip(e.Kind), Rows: int64(e.Rows), Values: l.o.Key.Hashes(e.Values),
		Request: l.o.Key.hashIfPhone(e.Request), Status: e.Status,
	}
	for _, id := range e.IDs[:min(len(e.IDs), maxIDs)] {
		out.IDs = append(out.IDs, l.o.Key.hashIfNumber(id))
	}
	return l.encodeEntry(out)
}

// encodeEntry returns an entry as JSON. Chain, number and previous hash are added when the line is appended.
func (l *Log) encodeEntry(e Entry) ([]byte, error) {
	if e.At.IsZero() {
		e.At = l.o.Now()
	}
	return encodeLine(e)
}

func encodeLine(e Entry) ([]byte, error) {
	e.At = e.At.UTC()
	type placeless struct { // these fields hide the fields of Entry with the same names
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

// hashIfNumber returns a name or an id as it is logged. If the text is or contains a phone number with its country
// code, the result is its hash.
func (k Key) hashIfNumber(text string) string {
	digits := -1 // the number of digits after a plus sign, or -1 before one
	for i := range len(text) {
		switch c := text[i]; {
		case c == '+':
			digits = 0
		case c >= '0' && c <= '9' && digits >= 0:
			digits++
		default:
			digits = -1
		}
		if digits == understudy.MinPhoneDigits {
			return k.Hash(text)
		}
	}
	if understudy.ParsePhone(text).HasCountryCode {
		return k.Hash(text)
	}
	return clip(text)
}

// hashIfPhone returns a request id as it is logged. Clients can choose the id, so an id that may contain a phone
// number is replaced by its hash.
func (k Key) hashIfPhone(id string) string {
	if accesslog.CanContainPhoneNumber(id) {
		return k.Hash(id)
	}
	return k.hashIfNumber(id)
}

func clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	return text[:maxText-len("…")] + "…"
}

// placeLine returns a line with its place in the chain: chain, number and previous hash.
func placeLine(chain string, number uint64, prev [sha256.Size]byte, body []byte) []byte {
	line := make([]byte, 0, len(body)+160)
	line = append(append(line, `{"chain":"`...), chain...)
	line = strconv.AppendUint(append(line, `","n":`...), number, 10)
	line = hex.AppendEncode(append(line, `,"prev":"`...), prev[:])
	line = append(line, `",`...)
	return append(line, body[1:]...)
}
