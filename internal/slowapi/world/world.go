// Package world holds the records of a made-up account: what the seed made, what
// happened since, and its clock.
package world

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/table"
)

// World is everything there is. Reads hold mu for reading, and for long lists
// only a batch at a time. Whatever changes it is an entry, applied by apply
// alone, so that a journal of entries is the world again.
type World struct {
	Seed      uint64
	Records   int64 // calls; there are twice as many messages
	Epoch     time.Time
	Account   string // SID of the main account
	Token     string
	ClockRuns bool // the clock runs in real time
	Kept      bool // participants of a conference show after its end
	Real      func() time.Time
	// Accounts is the kind of the accounts, Kinds are all others in the order of
	// their making.
	Accounts *Kind
	Kinds    []*Kind
	Shapes   map[string]*table.Template // of their records, by name

	People int64 // who call and write
	Cipher fake.Cipher

	Writing sync.Mutex // held from deciding on an entry until it is applied; its holder reads without Mu
	Mu      sync.RWMutex
	clock   time.Time // the world's time at wall
	wall    time.Time
	Top     *Sequence             // accounts
	Below   []map[*Kind]*Sequence // by account, then kind
}

// Days the calls and messages are spread over.
const Days = 90

// Unfinished is how many of the newest seeded indexes are looked at for records that
// are not in a final state at the beginning.
const Unfinished = 32

// TagSecrets is the tag of the draws of secrets.
const TagSecrets = 0x736563

// maxBorn bounds how many records of one kind may be created in one account.
const maxBorn = 1_000_000

// MaxAccounts bounds how many accounts a world may have.
const MaxAccounts = 1000

// ErrFull is the error of a record that has no room in the world.
var ErrFull = errors.New("slowapi: this world has no room for more records of this kind")

// New begins the world that the fields before People describe, and returns it. Nothing
// happened in it yet.
func New(w *World) *World {
	w.Epoch = w.Epoch.UTC().Truncate(time.Second)
	w.People, w.Cipher = max(w.Records/5, 1), fake.NewCipher(w.Seed)
	w.clock, w.wall = w.Epoch, w.Real()
	end := w.Epoch.Unix()
	w.Top = w.sequence(w.Accounts, 0, 2, end-500*86400, 86400)
	w.Below = []map[*Kind]*Sequence{w.emptyAccount(0), w.emptyAccount(1)}
	for _, k := range w.Kinds {
		newest, span := end, int64(Days*86400)
		if k.Old {
			newest, span = end-(Days+1)*86400, 300*86400
		}
		if k.Count != nil {
			w.join(w.Below[0], w.sequence(k, 0, k.Count(w), newest, span))
		}
		w.findLive(w.Below[0][k])
	}
	return w
}

// sequence makes the records of a kind that the seed decides.
func (w *World) sequence(k *Kind, account int, base, newest, span int64) *Sequence {
	return &Sequence{Kind: k, w: w, Account: account, Seed: w.Seed, Base: base, Newest: newest, span: span, Marks: map[int64]*mark{}}
}

// emptyAccount is an account in which nothing happened yet.
func (w *World) emptyAccount(account int) map[*Kind]*Sequence {
	all := map[*Kind]*Sequence{}
	for _, k := range w.Kinds {
		w.join(all, w.sequence(k, account, 0, w.Epoch.Unix(), 0))
	}
	return all
}

// join puts a sequence among those of its account.
func (w *World) join(all map[*Kind]*Sequence, s *Sequence) {
	all[s.Kind], s.Among = s, all
}

// findLive notes which of the newest records are not in a final state.
func (w *World) findLive(s *Sequence) {
	if s.Kind.Life == nil {
		return
	}
	for i := max(s.Base-Unfinished, 0); i < s.Base; i++ {
		p := s.Progress(i)
		if !p.done() {
			s.live = append(s.live, i)
		}
	}
}

// Now is the world's time. The caller holds mu.
func (w *World) Now() time.Time {
	if !w.ClockRuns {
		return w.clock
	}
	return w.clock.Add(max(w.Real().Sub(w.wall), 0))
}

// Time returns the world's time for callers that do not hold mu.
func (w *World) Time() time.Time {
	w.Mu.RLock()
	defer w.Mu.RUnlock()
	return w.Now()
}

// Of is the sequence of a kind in an account, nil when there is none.
func (w *World) Of(k *Kind, account int) *Sequence {
	if k == w.Accounts {
		return w.Top
	}
	if k == nil || account < 0 || account >= len(w.Below) {
		return nil
	}
	return w.Below[account][k]
}

// AppendSID appends the SID of a record.
func (w *World) AppendSID(dst []byte, s *Sequence, i int64) []byte {
	if s.Kind == w.Accounts {
		return append(dst, w.AccountSID(int(i))...)
	}
	prefix := s.Kind.Prefix
	if s.Kind.Second != nil {
		prefix = cmp.Or(s.Kind.Second(s, i), prefix)
	}
	return w.Cipher.AppendSID(dst, prefix, s.Account, s.Kind.Tag, i)
}

// SID returns the SID of a record.
func (w *World) SID(s *Sequence, i int64) string { return string(w.AppendSID(nil, s, i)) }

// Find returns the index of the record a SID names, deleted or not; false when this
// sequence never had it.
func (w *World) Find(s *Sequence, sid string) (int64, bool) {
	if s.Kind == w.Accounts && sid == w.Account {
		return 0, true
	}
	i, ok := w.Cipher.Index(sid, s.Account, s.Kind.Tag)
	if !ok || i >= s.Count() {
		return 0, false
	}
	var buf [34]byte
	return i, string(w.AppendSID(buf[:0], s, i)) == sid
}

// AccountSID returns the SID of an account by its number.
func (w *World) AccountSID(account int) string {
	if account == 0 {
		return w.Account
	}
	return string(w.Cipher.AppendSID(nil, w.Accounts.Prefix, 0, w.Accounts.Tag, int64(account)))
}

// KindNamed is the kind with a list key, nil for none.
func (w *World) KindNamed(name string) *Kind {
	if name == w.Accounts.Name {
		return w.Accounts
	}
	for _, k := range w.Kinds {
		if k.Name == name {
			return k
		}
	}
	return nil
}
