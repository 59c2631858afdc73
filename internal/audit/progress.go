// Progress: how far the receiver has come, over restarts.

package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"understudy"
)

// kvSent is the value of how far a receiver has come.
const kvSent = "audit sent"

// kvTime bounds a look at the value.
const kvTime = 10 * time.Second

// sentValue is how far it has come.
type sentValue struct {
	To     string            `json:"to"` // a hash of the receiver's address
	Chains map[string]uint64 `json:"chains"`
}

func (s *sender) reached(id string, last uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent[id], s.saved = last, false
}

// receiverName tells receivers apart, whatever token a query holds.
func (s *sender) receiverName() string {
	sum := sha256.Sum256([]byte(withoutQuery(s.o.URL)))
	return hex.EncodeToString(sum[:16])
}

// load reads how far the receiver has come. Another one gets the whole log.
func (s *sender) load(ctx context.Context) error {
	if s.known {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, kvTime)
	defer cancel()
	value, err := understudy.ReadValue(ctx, s.o.KV, kvSent)
	if err != nil {
		return err
	}
	var note sentValue
	if value != nil {
		if err := json.Unmarshal(value, &note); err != nil {
			return fmt.Errorf("audit: the value of %q: %w", kvSent, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if note.To == s.receiverName() {
		maps.Copy(s.sent, note.Chains)
	}
	s.known, s.saved = true, true
	return nil
}

// save keeps how far the receiver has come.
func (s *sender) save(ctx context.Context) error {
	s.mu.Lock()
	value, saved := sentValue{To: s.receiverName(), Chains: maps.Clone(s.sent)}, s.saved
	s.mu.Unlock()
	if saved {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, kvTime)
	defer cancel()
	if err := understudy.WriteJSON(ctx, s.o.KV, kvSent, value); err != nil {
		return err
	}
	s.mu.Lock()
	s.saved = true
	s.mu.Unlock()
	return nil
}

// stats are the figures of now, with the end of the chain that this process writes.
func (s *sender) stats(own string, last uint64) *Sending {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.now
	for id, end := range s.ends {
		if id != own {
			out.Behind += int64(end - s.sent[id])
		}
	}
	out.Behind += int64(last - min(last, s.sent[own]))
	return &out
}
