// This file stores how many lines the receiver has, so that sending continues after a restart.

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

// progressKey returns the name under which the progress of sending is stored in the KV store.
func (s *sender) progressKey() string { return "audit sent" + s.o.Folder }

// kvTimeout is the maximum time for reading or writing the progress.
const kvTimeout = 10 * time.Second

// sentValue is the stored progress of sending.
type sentValue struct {
	To     string            `json:"to"` // a hash of the receiver's address
	Chains map[string]uint64 `json:"chains"`
}

func (s *sender) setSent(id string, last uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sentLines[id], s.saved = last, false
}

// receiverName returns a name of the receiver that does not contain the address's query, which may contain a token.
func (s *sender) receiverName() string {
	sum := sha256.Sum256([]byte(stripQuery(s.o.URL)))
	return hex.EncodeToString(sum[:16])
}

// load reads how many lines the receiver has. A new receiver gets the whole log.
func (s *sender) load(ctx context.Context) error {
	if s.loaded {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, kvTimeout)
	defer cancel()
	value, err := understudy.ReadValue(ctx, s.o.KV, s.progressKey())
	if err != nil {
		return err
	}
	var note sentValue
	if value != nil {
		if err := json.Unmarshal(value, &note); err != nil {
			return fmt.Errorf("audit: the value of %q: %w", s.progressKey(), err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if note.To == s.receiverName() {
		maps.Copy(s.sentLines, note.Chains)
	}
	s.loaded, s.saved = true, true
	return nil
}

// save stores how many lines the receiver has.
func (s *sender) save(ctx context.Context) error {
	s.mu.Lock()
	value, saved := sentValue{To: s.receiverName(), Chains: maps.Clone(s.sentLines)}, s.saved
	s.mu.Unlock()
	if saved {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, kvTimeout)
	defer cancel()
	if err := understudy.WriteJSON(ctx, s.o.KV, s.progressKey(), value); err != nil {
		return err
	}
	s.mu.Lock()
	s.saved = true
	s.mu.Unlock()
	return nil
}

// stats returns the current state of sending. last is the number of the newest line of own, the chain of this process.
func (s *sender) stats(own string, last uint64) *SendStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.now
	for id, end := range s.lastLines {
		if id != own {
			out.Behind += int64(end - s.sentLines[id])
		}
	}
	out.Behind += int64(last - min(last, s.sentLines[own]))
	return &out
}
