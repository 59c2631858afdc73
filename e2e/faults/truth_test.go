// Truth: what upstream would have answered to each request, and from when to when.

package faults

import (
	"context"
	"fmt"
	"hash/maphash"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy/e2e/rig"
)

const (
	truthSlack = int64(time.Second)       // what an answer may be older than it says: seconds are whole there, and a busy machine
	truthKept  = int64(150 * time.Second) // states that ended longer ago are too old for any answer
	forever    = int64(1) << 62
)

// truths are what is true of a world that changes. Times are nanoseconds since zero.
type truths struct {
	testing.TB
	up   string
	zero time.Time
	seed maphash.Seed
	keys []*truth

	changing sync.RWMutex // held while something changes, until what is true of it is known
	late     atomic.Int64 // changes that were found only after that
}

// truth is one request and the states its answer has been in, the newest last.
type truth struct {
	path, kind string
	list       bool
	states     atomic.Pointer[[]*state]
	written    atomic.Int64 // when the last write that concerns it was acknowledged
	known      atomic.Int64 // since when its newest state is known
}

// state is one answer, which was true from some time on until some time. The views of
// roles that do not see all are made when they are first looked for.
type state struct {
	from   int64
	until  atomic.Int64
	status int
	body   []byte

	masking sync.Once
	sums    [1 + maskedViews]uint64
}

func (w *truths) now() int64 { return int64(time.Since(w.zero)) }

// add begins to keep what is true of a request.
func (w *truths) add(path, kind string) []byte {
	w.Helper()
	k := &truth{path: path, kind: kind, list: !regexp.MustCompile(`/[A-Z]{2}[0-9a-f]{32}\.json`).MatchString(path)}
	status, body := w.look(k)
	if status != http.StatusOK {
		w.Fatalf("%s: %d %s", path, status, body)
	}
	if slices.ContainsFunc(w.keys, func(other *truth) bool { return other.path == path }) {
		return body
	}
	k.states.Store(&[]*state{w.state(status, body, -forever)})
	w.keys = append(w.keys, k)
	return body
}

func (w *truths) state(status int, body []byte, from int64) *state {
	st := &state{status: status, body: body, from: from}
	st.until.Store(forever)
	st.sums[0] = maphash.Bytes(w.seed, body)
	return st
}

func (w *truths) look(k *truth) (status int, body []byte) {
	w.Helper()
	r := rig.Get(w, rig.Account+":"+rig.APIToken, w.up+"/-/truth"+k.path)
	return r.Status, r.Body
}

// change has do change something of kinds, one change at a time. A change that is
// acknowledged is seen by every request that begins after it: those for the lists of the
// kind and for the record at path.
func (w *truths) change(path string, do func() (acknowledged bool), kinds ...string) {
	w.Helper()
	w.changing.Lock()
	defer w.changing.Unlock()
	from := w.now()
	acknowledged := do()
	at := w.now()
	if !acknowledged { // a request whose answer was not waited for may still be under way
		rig.Pause(context.Background(), 50*time.Millisecond)
	}
	for _, k := range w.keys {
		if acknowledged && (k.path == path || k.list && slices.Contains(kinds, k.kind)) {
			k.written.Store(at)
		}
	}
	for _, k := range w.keys {
		if !slices.Contains(kinds, k.kind) {
			continue
		}
		states := *k.states.Load()
		last := states[len(states)-1]
		status, body := w.look(k)
		now := w.now()
		if status != last.status || string(body) != string(last.body) {
			if last.until.Store(now); acknowledged {
				last.until.Store(at)
			}
			states = slices.DeleteFunc(slices.Clone(states), func(old *state) bool { return old.until.Load() < now-truthKept })
			states = append(states, w.state(status, body, from))
			k.states.Store(&states)
		}
		k.known.Store(now)
	}
}

// shown is what one answer shows, and what it says of its age.
type shown struct {
	status          int
	sum             uint64 // of the body
	age             int64  // seconds
	began, received int64
	written         int64 // the last write that concerns it, before the request began
	excused         bool  // it says that it is stale because upstream fails: then it may be from before that write
	views           []int // which of them it may be
}

// judge says what is wrong with an answer; "" is nothing.
func (w *truths) judge(k *truth, s *shown) string {
	known := k.known.Load()
	why := w.compare(k, s)
	if why != "" || s.written > known {
		w.changing.RLock() // what is true just now is found out meanwhile
		why = w.compare(k, s)
		w.changing.RUnlock()
	}
	if why != "" {
		w.lookAgain(k)
		why = w.compare(k, s)
	}
	return why
}

// lookAgain adds the state in which upstream's answer is now, where it is otherwise than after the last
// change: upstream may have done a write late that was not acknowledged.
func (w *truths) lookAgain(k *truth) {
	if k.known.Load() == forever {
		return // it stays as it is
	}
	w.changing.Lock()
	defer w.changing.Unlock()
	states := *k.states.Load()
	last := states[len(states)-1]
	status, body := w.look(k)
	if status == last.status && string(body) == string(last.body) {
		return
	}
	w.late.Add(1)
	from := k.known.Load()
	last.until.Store(w.now())
	states = append(slices.Clone(states), w.state(status, body, from))
	k.states.Store(&states)
	k.known.Store(w.now())
}

// differs tells where a body begins to differ from what is true now, as the role that it is most like sees that.
func (w *truths) differs(k *truth, body []byte) string {
	states := *k.states.Load()
	whole, best := states[len(states)-1].body, -1
	told := ""
	for view := range 1 + maskedViews {
		want := whole
		if view > 0 {
			want = masked(k.kind, view-1, whole)
		}
		n := 0
		for n < min(len(want), len(body)) && want[n] == body[n] {
			n++
		}
		if n > best {
			best, told = n, rig.FirstDifference(want, body)
		}
	}
	return told
}

// compare looks for a state that the answer shows, and that was true within the age it says.
func (w *truths) compare(k *truth, s *shown) string {
	since, overtaken := s.began-(s.age+1)*int64(time.Second)-truthSlack, false
	for _, st := range slices.Backward(*k.states.Load()) {
		until := st.until.Load()
		switch {
		case st.from > s.received:
			continue
		case until < since:
			return w.tell(k, s, overtaken)
		case !w.shows(k, st, s):
			continue
		case until <= s.written && !s.excused:
			overtaken = true
		default:
			return ""
		}
	}
	return w.tell(k, s, overtaken)
}

func (w *truths) shows(k *truth, st *state, s *shown) bool {
	if st.status != s.status {
		return false
	}
	return slices.ContainsFunc(s.views, func(view int) bool {
		if view > 0 {
			st.masking.Do(func() {
				for n := range maskedViews {
					st.sums[1+n] = maphash.Bytes(w.seed, masked(k.kind, n, st.body))
				}
			})
		}
		return st.sums[view] == s.sum || view > 0 && st.status != http.StatusOK
	})
}

// tell says what a wrong answer is.
func (w *truths) tell(k *truth, s *shown, overtaken bool) string {
	if overtaken {
		return fmt.Sprintf("it is from before a write that was acknowledged %v before the request began", time.Duration(s.began-s.written))
	}
	seconds := func(at int64) string { return fmt.Sprintf("%.2f s", float64(at-s.received)/1e9) }
	for _, one := range append([]*truth{k}, w.keys...) {
		for _, st := range *one.states.Load() {
			of := *s
			for of.views = nil; len(of.views) <= maskedViews; {
				of.views = append(of.views, len(of.views))
			}
			if of.views = slices.DeleteFunc(of.views, func(v int) bool {
				return !w.shows(one, st, &shown{status: s.status, sum: s.sum, views: []int{v}})
			}); len(of.views) > 0 && s.status == http.StatusOK {
				return fmt.Sprintf("it is %s in views %v of %v, true from %s to %s; asked at %s, written at %s", one.path, of.views, s.views,
					seconds(st.from), seconds(st.until.Load()), seconds(s.began), seconds(s.written))
			}
		}
	}
	var all []string
	for _, st := range *k.states.Load() {
		all = append(all, fmt.Sprintf("%d from %s to %s", st.status, seconds(st.from), seconds(st.until.Load())))
	}
	return fmt.Sprintf("it forever was so; asked at %s; states: %s", seconds(s.began), strings.Join(all, ", "))
}

// maskedViews is how many views of a role that does not see all there are: without texts,
// and with them.
const maskedViews = 2

var (
	maskedNumber = `from|from_formatted|to|to_formatted|phone_number|friendly_name|[a-z_]*_url|status_callback|forwarded_from`
	hiddenText   = map[string]string{"messages": `body|num_segments|price`}
	oneNumber    = regexp.MustCompile(`^[0-9 +./()-]*$`)
	maskedFields = map[string]*regexp.Regexp{}
)

func init() {
	for _, kind := range []string{"calls", "messages", "incoming_phone_numbers"} {
		hidden := hiddenText[kind]
		if hidden == "" {
			hidden = `\x00`
		}
		maskedFields[kind] = regexp.MustCompile(`"(?:(` + maskedNumber + `)|(` + hidden + `))":("(?:[^"\\]|\\.)*"|[^",}\]]+)`)
	}
}

// masked is an answer as the role support sees it: the last four digits of numbers, and of
// messages in the first view no text and nothing that tells of it.
func masked(kind string, view int, body []byte) (out []byte) {
	end := 0
	for _, at := range maskedFields[kind].FindAllSubmatchIndex(body, -1) {
		value := string(body[at[6]:at[7]])
		switch {
		case value == "null":
		case at[2] >= 0:
			value = `"` + lastFour(strings.Trim(value, `"`)) + `"`
		case view == 0:
			value = "null"
		}
		out = append(append(out, body[end:at[6]]...), value...)
		end = at[7]
	}
	return append(out, body[end:]...)
}

func lastFour(number string) string {
	digits := strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, number)
	if !oneNumber.MatchString(number) || len(digits) < 8 {
		return "********"
	}
	return "********" + digits[len(digits)-4:]
}
