// API: one drawn API, its records, and what a client can know of them.

package randomapitest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
)

// API is one API. It answers HTTP requests and is safe for concurrent use.
type API struct {
	Number int
	Kind   string            // plural, the last segment of the list's path
	habits map[string]string // by axis
	config config

	mu      sync.Mutex
	rng     *rand.Rand // of what happens while it is asked
	records []record   // the oldest first
	walk    walk
	tokens  map[string]token
}

// config is what of an API is no habit, drawn at random.
type config struct {
	base       string // the path before it
	full, most int    // rows of a page unless another size is asked for, and at most
	first      int    // the number of the first page
	clock      string // the field with the time a record was made
	sizeParam  string
	position   string // the parameter that says where a page stands
	lie        int    // the total of an API whose total is too low
	gone       int    // status of a cursor whose record is gone; 0 = none: the list goes on behind its place
	beyond     string // what comes behind the last page
	keys       int    // how many keys there are, of an API whose records share them
	told       bool   // the document names the token's parameter where links have it
}

// record is one row. Its place is that of its sequence.
type record struct {
	sequence int
	hidden   bool // left out of pages after they were cut
}

// walk is what happened since Begin.
type walk struct {
	begun      bool
	asked      int // requests for the list
	tokenAsked int // of those with a token
	generation int // tokens of another one are refused
	ids        map[string]bool
	deleted    map[string]int // their sequences
}

// token is a place in the list.
type token struct{ generation, behind int }

// Draw draws n APIs. Every pair of habits that can stand together occurs in 500.
func Draw(seed uint64, n int) []*API {
	d := newDealer(seed)
	var all []*API
	for i := range n {
		all = append(all, newAPI(i, d.deal(), rand.New(rand.NewPCG(seed, uint64(i)+100))))
	}
	return all
}

func newAPI(number int, habits map[string]string, rng *rand.Rand) *API {
	a := &API{Number: number, habits: habits, rng: rng, tokens: map[string]token{}}
	one := func(of ...string) string { return of[rng.IntN(len(of))] }
	a.Kind = one("orders", "tickets", "companies", "boxes", "shipments", "invoices")
	a.config.base = one("", "/v1", "/api/v2", "/rest")
	a.config.full = 4 + rng.IntN(9)
	a.config.most = a.config.full + rng.IntN(2*a.config.full)
	if a.Has(sizeRounded) {
		a.config.full, a.config.most = 10, 50
	}
	a.config.first = 1 - rng.IntN(8)/7 // most count from 1
	a.config.clock = one("created_at", "created", "date_created")
	if a.Has(camelCase) {
		a.config.clock = "createdAt"
	}
	a.config.sizeParam = one("per_page", "limit", "page_size")
	if a.Has(camelCase) {
		a.config.sizeParam = one("pageSize", "limit")
	}
	a.config.told = rng.IntN(3) > 0
	a.config.beyond = one(emptyPage, errorBeyond, lastPageAgain)
	if end := habits["end"]; end != totalReached || !a.Has(rowsStill) {
		a.config.beyond = emptyPage
		if slices.Contains(unprovableEnds, end) {
			a.config.beyond = end
		}
	}
	if rng.IntN(2) == 0 {
		a.config.gone = []int{400, 404}[rng.IntN(2)]
	}
	a.config.position = a.drawPosition(one)
	if a.Has(dottedNames) || a.Has(odata2) {
		a.config.sizeParam = "$top"
	}
	a.fill()
	visible := len(a.visible())
	a.config.lie = max(1, visible-1-rng.IntN(max(1, visible/2)))
	if pages := visible / a.config.full; pages > 1 && rng.IntN(2) == 0 {
		a.config.lie = a.config.full * (1 + rng.IntN(pages-1)) // as if the list ended with a full page
	}
	most := visible - 1
	if a.Has(rowsDeleted) || a.Has(rowsAddedDeleted) {
		most -= 2 // or what is deleted in a walk would make it true
	}
	a.config.lie = min(a.config.lie, max(1, most))
	return a
}

// drawPosition draws the parameter that says where a page stands.
func (a *API) drawPosition(one func(...string) string) string {
	odata := a.Has(dottedNames) || a.Has(odata2)
	switch paging := a.habits["paging"]; paging {
	case pageNumber, linkHeader, nextPageHeader, nextPageInBody:
		return one("page", "page", "pageNumber")
	case offset, nextOffsetInBody, relativeLink, absoluteLink:
		if odata {
			return "$skip"
		}
		return one("offset", "skip")
	case lastID:
		return one("starting_after", "after")
	case tokenInBody, tokenInHeader, linkHeaderToken:
		return one("cursor", "page_token", "after")
	case absoluteLinkToken:
		if odata {
			return "$skiptoken"
		}
		return one("cursor", "page_token")
	}
	return ""
}

// fill makes the records. A list that is walked while it changes, or whose tokens end, has
// pages enough to be in the middle of.
func (a *API) fill() {
	n := a.config.most*3 + a.rng.IntN(2*a.config.most)
	if a.Has(wholeList) {
		n = 2 + a.rng.IntN(30)
	}
	if a.Has(tokensTooShort) {
		n += 5 * a.config.most
	}
	if n > 2*a.config.full && a.rng.IntN(6) == 0 {
		n -= n % a.config.full // the last page is full
	}
	if a.Has(toldByDocument) && a.Has(rowsStill) && a.Has(tokensLive) && a.Has(fullPages) && a.provesByEnd() && a.rng.IntN(10) == 0 {
		n = a.rng.IntN(a.config.full)
	}
	if a.Has(sharedKey) {
		n = max(n, 6)
	}
	a.config.keys = max(2, n-n/3)
	last := 0 // that is hidden: no page is empty, also when rows between are deleted
	for i := range n {
		hidden := a.Has(shortPages) && i-last > 3 && i < n-1 && a.rng.IntN(4) == 0
		if hidden {
			last = i
		}
		a.records = append(a.records, record{sequence: i, hidden: hidden})
	}
	if a.Has(emptyPages) {
		for i := range a.records[a.config.most : len(a.records)-a.config.full] {
			a.records[a.config.most+i].hidden = i < 2*a.config.most
		}
	}
}

// Has reports whether the API has a habit.
func (a *API) Has(habit string) bool { return a.habits[axisOf(habit)] == habit }

// String is the API's number and its habits.
func (a *API) String() string {
	text := fmt.Sprintf("API %d of %s", a.Number, a.Kind)
	seen := ""
	for _, h := range Habits {
		if h.Axis != seen {
			seen = h.Axis
			text += "; " + a.habits[h.Axis]
		}
	}
	return text
}

// Proves reports whether the answers prove to a client that walks the list that it holds all of it.
func (a *API) Proves() bool { return a.provesByEnd() && !a.Has(tokensTooShort) && !a.Has(sharedKey) }

func (a *API) provesByEnd() bool { return !slices.Contains(unprovableEnds, a.habits["end"]) }

// Begin says that a client walks the list from now on: rows may move, and tokens may end.
func (a *API) Begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.walk = walk{begun: true, ids: map[string]bool{}, deleted: map[string]int{}}
	for _, r := range a.visible() {
		a.walk.ids[a.id(r)] = true
	}
}

// Whole are the ids that a client must hold that has walked the list since Begin: of the
// records that were there all the time.
func (a *API) Whole() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []string
	for id := range a.walk.ids {
		if _, deleted := a.walk.deleted[id]; !deleted {
			all = append(all, id)
		}
	}
	slices.Sort(all)
	return all
}

func (a *API) visible() []record {
	return slices.DeleteFunc(slices.Clone(a.records), func(r record) bool { return r.hidden })
}

// ordered are the records in the order of the list.
func (a *API) ordered() []record {
	all := slices.Clone(a.records)
	if a.Has(newestFirst) {
		slices.Reverse(all)
	}
	return all
}

// move lets rows come and go before the list is answered.
func (a *API) move() {
	a.walk.asked++
	if !a.walk.begun {
		return
	}
	if shortLife := slices.Contains(shortLives, a.habits["life"]) && !a.Has(tokensTooShort); shortLife && a.walk.asked == 3 {
		a.walk.generation++
	}
	if a.walk.asked != 2 && a.walk.asked != 4 {
		return
	}
	if a.Has(rowsAdded) || a.Has(rowsAddedDeleted) {
		last := a.records[len(a.records)-1]
		a.records = append(a.records, record{sequence: last.sequence + 1})
	}
	if a.Has(rowsDeleted) || a.Has(rowsAddedDeleted) {
		i := a.rng.IntN(len(a.records))
		a.walk.deleted[a.id(a.records[i])] = a.records[i].sequence
		a.records = slices.Delete(a.records, i, i+1)
	}
}

// id is a record's id as a text.
func (a *API) id(r record) string {
	mixed := uint64(r.sequence+1) * 0x9e3779b97f4a7c15
	switch a.habits["id"] {
	case numberID:
		return fmt.Sprint(1000 + 3*r.sequence)
	case digitsID, gidField:
		return fmt.Sprint(1_200_000_000_000_000 + 7_919*r.sequence)
	case uuidID, uuidField:
		return fmt.Sprintf("%08x-%04x-4000-8000-%012x", uint32(mixed>>32), uint16(mixed>>16), r.sequence)
	case sidField:
		return fmt.Sprintf("OB%016x%016x", mixed, r.sequence)
	case keyField:
		return fmt.Sprintf("OPS-%d", 1+r.sequence)
	case sharedKey:
		return fmt.Sprintf("disk-full-%d", r.sequence%a.config.keys)
	}
	return fmt.Sprintf("ob_%016x", mixed)
}

// idName is the field of the id.
func (a *API) idName() string {
	switch a.habits["id"] {
	case uuidField:
		return "uuid"
	case sidField:
		return "sid"
	case gidField:
		return "gid"
	case keyField, sharedKey:
		return "key"
	}
	return "id"
}
