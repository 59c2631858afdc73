// The world: what the seed made, what happened since, and its clock.
package slowapi

import (
	"errors"
	"sync"
	"time"
	"understudy/internal/slowapi/fake"
)

// world is everything there is. Reads hold mu for reading, and for long lists
// only a batch at a time. Whatever changes it is an entry, applied by apply
// and nobody else, so that a journal of entries is the world again.
type world struct {
	seed    uint64
	records int64
	epoch   time.Time
	people  int64
	cipher  fake.Cipher
	account string // SID of the main account
	token   string
	flows   bool // the clock runs in real time
	kept    bool // who took part in a conference shows after its end
	real    func() time.Time

	writing sync.Mutex // held from deciding on an entry until it is applied
	mu      sync.RWMutex
	clock   time.Time // the world's time at wall
	wall    time.Time
	top     *sequence             // accounts
	below   []map[*kind]*sequence // by account, then kind

	accounts *kind
	kinds    []*kind // all others
}

// days the calls and messages are spread over.
const days = 90

// unfinished is how many of the newest indexes are looked at for records that
// are not in a final state at the beginning.
const unfinished = 32

// tagSecrets is the tag of the draws of secrets.
const tagSecrets = 0x736563

// maxBorn bounds how many records of one kind may be created in one account.
const maxBorn = 1_000_000

// maxAccounts bounds how many accounts a world may have.
const maxAccounts = 1000

var errFull = errors.New("slowapi: this world has no room for more records of this kind")

// worldOptions say what a world is made of.
type worldOptions struct {
	seed           uint64
	records        int
	epoch          time.Time
	account, token string
	flows, kept    bool
	now            func() time.Time
	// accounts is the kind of the accounts, kinds all others in the order of their
	// making.
	accounts *kind
	kinds    []*kind
}

// newWorld makes a world in which nothing happened yet.
func newWorld(o worldOptions) *world {
	w := &world{
		seed: o.seed, records: int64(o.records), epoch: o.epoch.UTC().Truncate(time.Second),
		people: max(int64(o.records)/5, 1), cipher: fake.NewCipher(o.seed),
		account: o.account, token: o.token, flows: o.flows, real: o.now,
		kept: o.kept, accounts: o.accounts, kinds: o.kinds,
	}
	w.clock, w.wall = w.epoch, o.now()
	end := w.epoch.Unix()
	w.top = w.sequence(w.accounts, 0, 2, end-500*86400, 86400)
	w.below = []map[*kind]*sequence{w.emptyAccount(0), w.emptyAccount(1)}
	for _, k := range w.kinds {
		if k.seed != nil {
			w.join(w.below[0], k.seed(w, k))
		}
		w.findLive(w.below[0][k])
	}
	return w
}

func (w *world) sequence(k *kind, account int, base, newest, span int64) *sequence {
	return &sequence{kind: k, account: account, seed: w.seed, base: base, newest: newest, span: span, marks: map[int64]*mark{}}
}

// emptyAccount is an account in which nothing happened yet.
func (w *world) emptyAccount(account int) map[*kind]*sequence {
	all := map[*kind]*sequence{}
	for _, k := range w.kinds {
		w.join(all, w.sequence(k, account, 0, w.epoch.Unix(), 0))
	}
	return all
}

// join puts a sequence among those of its account.
func (w *world) join(all map[*kind]*sequence, s *sequence) {
	all[s.kind], s.among = s, all
	if s.kind.derive != nil {
		s.kind.derive(w, s)
	}
}

// findLive notes which of the newest records are not in a final state.
func (w *world) findLive(s *sequence) {
	if s.kind.life == nil {
		return
	}
	for i := max(s.base-unfinished, 0); i < s.base; i++ {
		p := progressOf(s, i, s.kind.life(s, i))
		if !p.done() {
			s.live = append(s.live, i)
		}
	}
}

// now is the world's time. The caller holds mu.
func (w *world) now() time.Time {
	if !w.flows {
		return w.clock
	}
	return w.clock.Add(max(w.real().Sub(w.wall), 0))
}

// of is the sequence of a kind in an account, nil when there is none.
func (w *world) of(k *kind, account int) *sequence {
	if k == w.accounts {
		return w.top
	}
	if k == nil || account < 0 || account >= len(w.below) {
		return nil
	}
	return w.below[account][k]
}

// appendSID appends the SID of a record.
func (w *world) appendSID(dst []byte, s *sequence, i int64) []byte {
	if s.kind == w.accounts {
		return append(dst, w.accountSID(int(i))...)
	}
	prefix := s.kind.prefix
	if s.kind.otherPrefix != "" && s.kind.other(w, s, i) {
		prefix = s.kind.otherPrefix
	}
	return w.cipher.AppendSID(dst, prefix, s.account, s.kind.tag, i)
}

// find is the index of the record a SID names, deleted or not; false when this
// sequence never had it.
func (w *world) find(s *sequence, sid string) (int64, bool) {
	if s.kind == w.accounts {
		index, ok := w.accountIndex(sid)
		return int64(index), ok
	}
	i, ok := w.cipher.Index(sid, s.account, s.kind.tag)
	if !ok || i >= s.count() {
		return 0, false
	}
	var buf [34]byte
	return i, string(w.appendSID(buf[:0], s, i)) == sid
}

// accountSID is the SID of an account by its number.
func (w *world) accountSID(account int) string {
	if account == 0 {
		return w.account
	}
	return string(w.cipher.AppendSID(nil, w.accounts.prefix, 0, w.accounts.tag, int64(account)))
}

// accountIndex is the number of the account a SID names.
func (w *world) accountIndex(sid string) (int, bool) {
	if sid == w.account {
		return 0, true
	}
	i, ok := w.cipher.Index(sid, 0, w.accounts.tag)
	return int(i), ok && i > 0 && i < w.top.count() && w.accountSID(int(i)) == sid
}

// accountToken is the secret of an account.
func (w *world) accountToken(account int) string {
	if account == 0 {
		return w.token
	}
	d := fake.RngFor(w.seed, tagSecrets, int64(account))
	return string(d.Hex(nil, 16))
}

// kindNamed is the kind with a list key, nil for none.
func (w *world) kindNamed(name string) *kind {
	if name == w.accounts.name {
		return w.accounts
	}
	for _, k := range w.kinds {
		if k.name == name {
			return k
		}
	}
	return nil
}
