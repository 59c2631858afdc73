// The world: what the seed made, what happened since, and its clock.
package slowapi

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// world is everything there is. Reads hold mu for reading, and for long lists
// only a batch at a time. Whatever changes it is an entry, applied by apply
// and nobody else, so that a journal of entries is the world again.
type world struct {
	seed    uint64
	records int64
	epoch   time.Time
	people  int64
	cipher  cipher
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
}

// days the calls and messages are spread over.
const days = 90

// unfinished is how many of the newest indexes are looked at for records that
// are not in a final state at the beginning.
const unfinished = 32

// maxBorn bounds how many records of one kind may be created in one account.
const maxBorn = 1_000_000

var errFull = errors.New("slowapi: this world has no room for more records of this kind")

func newWorld(o Options) *world {
	w := &world{
		seed: o.Seed, records: int64(o.Records), epoch: o.Epoch.UTC().Truncate(time.Second),
		people: max(int64(o.Records)/5, 1), cipher: newCipher(o.Seed),
		account: o.Account, token: o.Token, flows: o.Arrivals > 0, real: o.Now,
		kept: slices.Contains(o.Quirks, participantsKept),
	}
	w.clock, w.wall = w.epoch, o.Now()
	end := w.epoch.Unix()
	w.top = w.sequence(accounts, 0, 2, end-500*86400, 86400)
	w.below = []map[*kind]*sequence{w.emptyAccount(0), w.emptyAccount(1)}
	for _, k := range kinds {
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
	for _, k := range kinds {
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
	if k == accounts {
		return w.top
	}
	if k == nil || account < 0 || account >= len(w.below) {
		return nil
	}
	return w.below[account][k]
}

// appendSID appends the SID of a record.
func (w *world) appendSID(dst []byte, s *sequence, i int64) []byte {
	if s.kind == accounts {
		return append(dst, w.accountSID(int(i))...)
	}
	prefix := s.kind.prefix
	if s.kind.otherPrefix != "" && w.carriesMedia(s, i) {
		prefix = s.kind.otherPrefix
	}
	return w.cipher.appendSID(dst, prefix, s.account, s.kind.tag, i)
}

// carriesMedia tells whether a message's SID begins with MM.
func (w *world) carriesMedia(s *sequence, i int64) bool {
	if s.written(i) {
		_, media := s.form(i, "MediaUrl")
		return media
	}
	return mediaPlace(w.seed, i/20) == i
}

// find is the index of the record a SID names, deleted or not; false when this
// sequence never had it.
func (w *world) find(s *sequence, sid string) (int64, bool) {
	if s.kind == accounts {
		index, ok := w.accountIndex(sid)
		return int64(index), ok
	}
	i, ok := w.cipher.index(sid, s.account, s.kind.tag)
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
	return string(w.cipher.appendSID(nil, accounts.prefix, 0, accounts.tag, int64(account)))
}

// accountIndex is the number of the account a SID names.
func (w *world) accountIndex(sid string) (int, bool) {
	if sid == w.account {
		return 0, true
	}
	i, ok := w.cipher.index(sid, 0, accounts.tag)
	return int(i), ok && i > 0 && i < w.top.count() && w.accountSID(int(i)) == sid
}

// accountToken is the secret of an account.
func (w *world) accountToken(account int) string {
	if account == 0 {
		return w.token
	}
	d := rngFor(w.seed, tagSecrets, int64(account))
	return string(d.hex(nil, 16))
}

// ownSID is the SID of one of the numbers the main account began with.
func (w *world) ownSID(own int64) string {
	return string(w.appendSID(nil, w.below[0][numbers], own))
}

// kindNamed is the kind with a list key, nil for none.
func kindNamed(name string) *kind {
	if name == accounts.name {
		return accounts
	}
	for _, k := range kinds {
		if k.name == name {
			return k
		}
	}
	return nil
}

// requestID is a name for one answer.
func requestID() string {
	d := rng(rand.Uint64())
	return string(d.hex([]byte("RQ"), 16))
}

// isSID tells whether s has the form of a SID with this prefix.
func isSID(s, prefix string) bool {
	if len(s) != 34 || !strings.HasPrefix(s, prefix) {
		return false
	}
	for _, c := range []byte(s[2:]) {
		hex := c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
		if !hex {
			return false
		}
	}
	return true
}

// isNumber tells whether s is a number in E.164.
func isNumber(s string) bool {
	return len(s) >= 4 && len(s) <= 16 && s[0] == '+' && digits(s[1:])
}
