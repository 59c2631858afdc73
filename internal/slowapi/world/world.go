// Package world has the records of simulated Twilio accounts, and a clock. The first records are computed from a
// seed. Only later changes are stored.
package world

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/table"
)

// World has all simulated accounts and their records. Whoever reads must hold Mu for reading; long lists release it
// from time to time. Every change is an Entry, which Apply or Plan carries out. So applying the entries of a journal
// again restores all records.
type World struct {
	Seed             uint64
	Records          int64 // the number of seeded calls; there are twice as many seeded messages
	Epoch            time.Time
	Account          string // the SID of the main account
	Token            string
	ClockRuns        bool // whether the clock runs in real time; if not, it stands still until it is advanced
	ParticipantsKept bool // whether the participants of a conference are still listed after its end
	RealTime         func() time.Time
	// Accounts is the kind of accounts, and Kinds are all other kinds. A kind must come after the kinds from which
	// its records are computed.
	Accounts *Kind
	Kinds    []*Kind
	Shapes   map[string]*table.Template // the templates that render records, by name

	People int64 // the number of people who make calls and write messages
	Cipher fake.Cipher

	Writing         sync.Mutex // a lock that is held while a change is planned and applied; its holder may read without Mu
	Mu              sync.RWMutex
	clock           time.Time             // the simulated time of the last change
	wall            time.Time             // the real time of the last change
	AccountSequence *Sequence             // the sequence of the accounts
	Sequences       []map[*Kind]*Sequence // the records, by the number of the account and then by kind
}

// Days is the number of days over which seeded calls and messages are distributed.
const Days = 90

// UnfinishedWindow is how many of the newest seeded records of a kind may have a status that is not final at first.
const UnfinishedWindow = 32

// TagSecrets is the tag of the random numbers for secrets.
const TagSecrets = 0x736563

// maxCreated is the maximum number of records that may be created of one kind in one account.
const maxCreated = 1_000_000

// MaxAccounts is the maximum number of accounts.
const MaxAccounts = 1000

// ErrFull is the error that a kind has the maximum number of records.
var ErrFull = errors.New("slowapi: this world has no room for more records of this kind")

// New completes a World whose fields before People are set, and returns it. It has only seeded records.
func New(w *World) *World {
	w.Epoch = w.Epoch.UTC().Truncate(time.Second)
	w.People, w.Cipher = max(w.Records/5, 1), fake.NewCipher(w.Seed)
	w.clock, w.wall = w.Epoch, w.RealTime()
	end := w.Epoch.Unix()
	w.AccountSequence = w.newSequence(w.Accounts, 0, 2, end-500*86400, 86400)
	w.Sequences = []map[*Kind]*Sequence{w.emptyAccount(0), w.emptyAccount(1)}
	for _, k := range w.Kinds {
		newest, span := end, int64(Days*86400)
		if k.Old {
			newest, span = end-(Days+1)*86400, 300*86400
		}
		if k.Count != nil {
			w.join(w.Sequences[0], w.newSequence(k, 0, k.Count(w), newest, span))
		}
		w.findUnfinished(w.Sequences[0][k])
	}
	return w
}

// newSequence returns the seeded records of a kind. base is their number. They were created in the span seconds before newest.
func (w *World) newSequence(k *Kind, account int, base, newest, span int64) *Sequence {
	return &Sequence{
		Kind: k, w: w, Account: account, Seed: w.Seed, SeededCount: base, Newest: newest, span: span, History: map[int64]*history{},
	}
}

// emptyAccount returns the sequences of a new account, which have no records.
func (w *World) emptyAccount(account int) map[*Kind]*Sequence {
	all := map[*Kind]*Sequence{}
	for _, k := range w.Kinds {
		w.join(all, w.newSequence(k, account, 0, w.Epoch.Unix(), 0))
	}
	return all
}

// join adds a sequence to those of its account.
func (w *World) join(all map[*Kind]*Sequence, s *Sequence) {
	all[s.Kind], s.Siblings = s, all
}

// findUnfinished sets the list of seeded records that are not in a final status.
func (w *World) findUnfinished(s *Sequence) {
	if s.Kind.Lifecycle == nil {
		return
	}
	for i := max(s.SeededCount-UnfinishedWindow, 0); i < s.SeededCount; i++ {
		p := s.Progress(i)
		if !p.isFinal() {
			s.unfinished = append(s.unfinished, i)
		}
	}
}

// Now returns the simulated time. The caller holds Mu.
func (w *World) Now() time.Time {
	if !w.ClockRuns {
		return w.clock
	}
	return w.clock.Add(max(w.RealTime().Sub(w.wall), 0))
}

// Time returns the simulated time. The caller must not hold Mu.
func (w *World) Time() time.Time {
	w.Mu.RLock()
	defer w.Mu.RUnlock()
	return w.Now()
}

// Sequence returns the records of a kind in an account. It returns nil if there is no such kind or account.
func (w *World) Sequence(k *Kind, account int) *Sequence {
	if k == w.Accounts {
		return w.AccountSequence
	}
	if k == nil || account < 0 || account >= len(w.Sequences) {
		return nil
	}
	return w.Sequences[account][k]
}

// AppendSID appends the SID of a record.
func (w *World) AppendSID(dst []byte, s *Sequence, i int64) []byte {
	if s.Kind == w.Accounts {
		return append(dst, w.AccountSID(int(i))...)
	}
	prefix := s.Kind.Prefix
	if s.Kind.PrefixOf != nil {
		prefix = cmp.Or(s.Kind.PrefixOf(s, i), prefix)
	}
	return w.Cipher.AppendSID(dst, prefix, s.Account, s.Kind.Tag, i)
}

// SID returns the SID of a record.
func (w *World) SID(s *Sequence, i int64) string { return string(w.AppendSID(nil, s, i)) }

// Find returns the index of the record with a SID, even if the record was deleted. It returns false if there has
// never been such a record.
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

// KindNamed returns the kind with a name, or nil if there is none.
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
